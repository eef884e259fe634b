"""The report for a terminal without a screen: the comparison, then each run. Every percentage says of what."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from meshscope.analysis.comparison import Comparison, Row, comparison
from meshscope.reports.columns import encodable, table, wrapped
from meshscope.reports.kernels_text import kernel_lines
from meshscope.reports.losses_text import loss_lines
from meshscope.reports.run_text import run_lines
from meshscope.reports.scaling_text import scaling_lines
from meshscope.run import Run
from meshscope.units import UNKNOWN, duration, milliseconds, percent, printable, rate, size

_DRAWN_KEY = "exposed: share of the simulated step; peak: of the fullest rank. All of it is predicted."
_KEY = "exposed: share of a profiled step; peak: of the fullest rank; profiler: its share of training time."
_HEADING = ("strategy", "samples/s", "±", "ms/step", "×1", "exposed", "peak", "compile", "profiler")


def report(
    runs: Sequence[Run], *, encoding: str | None = None, answer_last: bool = False, with_kernels: bool = False
) -> str:
    """All of it as text. ``encoding`` is the terminal's (stdout's when None): what it cannot show becomes ASCII.

    ``answer_last`` puts the comparison at the end, where it stays in sight of who watched the lines go by.
    ``with_kernels`` adds which rule took which names for what.
    """
    recorded = tuple(run for run in runs if run.experiment.strategy)
    found = comparison(recorded) if recorded else None
    beside = [*scaling_lines(recorded, found.rows), *loss_lines(recorded)] if found else []
    compared = [*_compared(found), *beside] if found else []
    details = [line for run in runs for line in ("", *run_lines(run), *(kernel_lines(run) if with_kernels else ()))]
    lines = [*details, "", *compared] if answer_last else [*compared, *details]
    text = "\n".join(printable(line) for line in lines).strip("\n")
    return encodable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")


def _compared(found: Comparison) -> list[str]:
    lines = wrapped(found.verdict, indent="")
    lines += ["", *_table(found.rows)]
    lines += wrapped(_DRAWN_KEY if all(row.is_simulated for row in found.rows) else _KEY, indent="")
    for row in found.rows:
        if row.progress.why:
            lines += wrapped(f"{row.strategy} {row.progress.state}: {row.progress.why}", indent="", hanging="  ")
    for note in found.footnotes:
        lines += wrapped(f"– {note}", indent="", hanging="  ")
    return lines


def _table(rows: Sequence[Row]) -> list[str]:
    """Strategies first; what they are measured against apart from them."""
    strategies = [row for row in rows if not row.is_baseline]
    baselines = [row for row in rows if row.is_baseline]
    lines = table(_HEADING, [_row(row) for row in (*strategies, *baselines)], indent="")
    if strategies and baselines:
        lines.insert(1 + len(strategies), "on one device, to measure against:")
    return lines


def _row(row: Row) -> tuple[str, ...]:
    is_apart = not row.is_ranked and not row.is_baseline
    return (
        row.strategy + (" †" if is_apart else ""),
        rate(row.samples_per_s),
        rate(row.samples_per_s_spread),
        milliseconds(row.median_ns),
        UNKNOWN if row.speedup != row.speedup else f"{row.speedup:.2f}",
        percent(row.exposed_frac),
        size(row.peak_bytes),
        duration(row.compile_ns),
        percent(row.profiler_cost_frac),
    )
