"""Predictions of a table of published runs as text, and how far off they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from meshscope.advisor.predictions import GIB, Predicted
from meshscope.advisor.scoring import Errors, Score, constant_mfu, scores
from meshscope.reports.columns import encodable, shortened, table, wrapped
from meshscope.units import NS_PER_S, UNKNOWN, counted, duration, percent, printable, ratio

Row = Mapping[str, str]


def runs_report(
    rows: Sequence[Row], found: Sequence[Predicted], *, with_score: bool, encoding: str | None = None
) -> str:
    """A line for each row, then why some are not covered, then the score."""
    heading = ("run", "step", "90 % within", "GiB alloc.", "reserved", "fits")
    lines = table(heading, [_row(each) for each in found], indent="")
    lines += _uncovered(found)
    impossible = [each.run_id for each in found if each.impossible]
    if impossible:
        lines += wrapped(f"Claimed, but impossible: {', '.join(impossible)}.", indent="", hanging="  ")
    if with_score:
        lines += ["", *_scored(scores(rows, found, constant_mfu(rows)))]
    text = "\n".join(printable(line) for line in lines)
    return encodable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")


def _row(each: Predicted) -> tuple[str, ...]:
    time, held = each.step_time_s, each.memory
    step = duration(time.value * NS_PER_S) if time else UNKNOWN
    within = f"{duration(time.low * NS_PER_S)} – {duration(time.high * NS_PER_S)}" if time else UNKNOWN
    allocated = f"{held.allocated.value / GIB:.1f}" if held else UNKNOWN
    reserved = f"{held.reserved.value / GIB:.1f}" if held else UNKNOWN
    return shortened(each.run_id, 28), step, within, allocated, reserved, str(held.fit) if held else UNKNOWN


def _uncovered(found: Sequence[Predicted]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for each in found:
        if each.cannot_say:
            reasons.setdefault(each.cannot_say, []).append(each.run_id)
    covered = sum(each.step_time_s is not None for each in found)
    lines = [f"{covered} of {counted(len(found), 'row')} covered ({percent(ratio(covered, len(found)))} of the rows)."]
    for reason, runs in sorted(reasons.items(), key=lambda item: -len(item[1])):
        lines += wrapped(f"cannot say of {counted(len(runs), 'row')}: {reason}", indent="", hanging="  ")
    return lines


def _scored(found: Sequence[Score]) -> list[str]:
    times = [(shortened(each.source, 24), f"{each.time.count}/{each.timed}", *_of(each.time), percent(each.inside_frac),
              percent(each.constant_mfu.mean_frac), percent(each.roofline.mean_frac))
             for each in found if each.timed]  # fmt: skip
    held = [(shortened(each.source, 24), *_of(each.allocated), *_of(each.reserved))
            for each in found if not (each.allocated.is_empty and each.reserved.is_empty)]  # fmt: skip
    lines = ["Errors of the step time, as shares of what was measured; two simple rules' means beside them:"]
    lines += table(("source", "rows", "mean", "p90", "max", "in 90 %", "const. MFU", "roofline"), times, indent="")
    if held:
        lines += ["", "Errors of memory, allocated and reserved:"]
        lines += table(("source", "mean", "p90", "max", "mean", "p90", "max"), held, indent="")
    timed = [each for each in found if not each.time.is_empty]
    if timed:
        worst = max(timed, key=lambda each: each.time.mean_frac)
        lines += wrapped(f"Worst source: {worst.source}, {percent(worst.time.mean_frac)} off on average; its worst run "
                         f"is {worst.worst_run}.", indent="")  # fmt: skip
    return lines


def _of(found: Errors) -> tuple[str, str, str]:
    return percent(found.mean_frac), percent(found.p90_frac), percent(found.worst_frac)
