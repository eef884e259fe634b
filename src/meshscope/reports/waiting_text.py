"""Waiting and lateness in the text report: a few lines, the rank that holds the others up first."""

from __future__ import annotations

import math

from meshscope.analysis.imbalance import MemoryImbalance, memory_imbalance
from meshscope.analysis.lateness import NO_STEP, Lateness, collective_lateness, input_lateness, pattern
from meshscope.analysis.pipeline import pipeline
from meshscope.analysis.slow_steps import input_waits, slow_steps
from meshscope.analysis.stragglers import stragglers
from meshscope.analysis.waiting import waiting
from meshscope.analysis.waiting_words import pattern_words, straggler_words, waiting_words
from meshscope.reports.columns import table, wrapped
from meshscope.run import Run
from meshscope.units import UNKNOWN, counted, duration, milliseconds, percent, ranges, size

MOST_RANKS, MOST_STEPS, MOST_SLOW = 16, 8, 5
_STALLED_FRAC = 0.05


def waiting_lines(run: Run) -> list[str]:
    """Nothing where no collective was matched and no step says anything."""
    found = waiting(run)
    late = stragglers(run)
    said = waiting_words(found)
    lines = wrapped(said, hanging="  ") if said else []
    for one in late[:MOST_SLOW]:
        lines += wrapped(straggler_words(one), indent="    ", hanging="  ")
    matrix = collective_lateness(run, found)
    if late and matrix.is_known:
        lines += _lateness(matrix)
    lines += _input(run)
    lines += _slow(run)
    imbalance = memory_imbalance(run)
    is_staged = pipeline(run) is not None
    return lines + (_memory(imbalance, is_staged=is_staged) if imbalance is not None and imbalance.is_material else [])


def _lateness(found: Lateness) -> list[str]:
    """Ranks by steps, the last ones where there are many."""
    steps = found.steps[-MOST_STEPS:]
    heading = ("rank", *("all" if step == NO_STEP else str(step) for step in steps))
    rows = [
        (str(rank), *(milliseconds(cell) if not math.isnan(cell) else UNKNOWN for cell in row[-MOST_STEPS:]))
        for rank, row in zip(found.ranks, found.late_ns.tolist(), strict=True)
    ]
    of = f" (the last {len(steps)} of {len(found.steps)})" if len(steps) < len(found.steps) else ""
    said = f"lateness by step{of}, ms in which a rank had not come to a collective and the median rank had:"
    lines = wrapped(said, indent="    ")
    lines += table(heading, rows[:MOST_RANKS], indent="      ")
    if len(rows) > MOST_RANKS:
        lines.append(f"      … {counted(len(rows) - MOST_RANKS, 'more rank')}")
    seen = pattern_words(pattern(found))
    return lines + (wrapped(seen, indent="    ", hanging="  ") if seen else [])


def _input(run: Run) -> list[str]:
    stalled = [rank for rank in input_waits(run) if len(rank.stalls) >= _STALLED_FRAC * rank.steps]
    if not stalled:
        return []
    worst = max(stalled, key=lambda rank: (rank.frac, -rank.rank))
    said = f"input: rank {worst.rank} waits for its batch {percent(worst.frac)} of its {worst.steps} measured steps; "
    said += f"a tenth of the step or more in {counted(len(worst.stalls), 'step')} ({ranges(worst.stalls, MOST_SLOW)})"
    seen = pattern(input_lateness(run))
    if seen.kind == "roaming":
        said += f"; the slowest input roams over ranks {ranges(seen.ranks)}"
    return wrapped(said, hanging="  ")


def _slow(run: Run) -> list[str]:
    found = slow_steps(run)
    if not found:
        return []
    worst = max(found, key=lambda step: step.excess_ns)
    said = f"one slow step: step {worst.step} took "
    if len(found) > 1:
        numbers = ranges([step.step for step in found], MOST_SLOW)
        said = f"{len(found)} slow steps (numbers {numbers}); the worst, step {worst.step}, took "
    said += f"{duration(worst.duration_ns)}, {duration(worst.excess_ns)} beyond the median"
    if worst.phase == "data":
        said += f": rank {worst.data_rank} waited {duration(worst.data_ns)} for its batch"
    return wrapped(said, hanging="  ")


def _memory(found: MemoryImbalance, *, is_staged: bool) -> list[str]:
    uneven = "memory of the stages is uneven, partly by design" if is_staged else "memory is uneven"
    said = f"{uneven}: rank {found.fullest} peaks at {size(found.peak_bytes)}, {percent(found.frac)} above the "
    said += f"median rank's {size(found.median_bytes)}; rank {found.emptiest} at {size(found.least_bytes)}"
    return wrapped(said, hanging="  ")
