"""Kernels, operators, phases and scopes in the text report: the few that take most of the time."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.carried_out import carried_out
from meshscope.analysis.operations import Operation, operations
from meshscope.analysis.phases import Phase, phases
from meshscope.analysis.scopes import Scopes, scopes
from meshscope.reports.columns import shortened, table, wrapped
from meshscope.run import Run
from meshscope.units import UNKNOWN, counted, duration, milliseconds, percent, ratio

MOST = 5


def operations_lines(run: Run) -> list[str]:
    """Nothing where no device did anything."""
    found = operations(run)
    if not found:
        return []
    lines = wrapped(f"longest of {counted(len(found), 'kernel and operator name')} (of all device work, added up):")
    heading = ("", "calls", "ms", "share", "mean", "p95")
    lines += table(heading, [_row(one) for one in found[:MOST]], indent="    ")
    carried = carried_out(run)
    for name in dict.fromkeys(one.name for one in found[:MOST] if one.name in carried):
        lines += wrapped(carried[name], indent="    ", hanging="  ")
    marked = phases(run)
    if marked:
        lines += wrapped(_phases(marked), hanging="  ")
    for one in scopes(run):
        lines += wrapped(_scopes(one), hanging="  ")
    return lines


def _row(found: Operation) -> tuple[str, ...]:
    return (
        shortened(found.name or UNKNOWN),
        str(found.count),
        milliseconds(found.total_ns),
        percent(found.frac),
        duration(found.mean_ns),
        duration(found.p95_ns),
    )


def _phases(marked: Sequence[Phase]) -> str:
    """Not of the device work that other lines are of, which adds up what runs at the same time."""
    of = duration(sum(one.busy_ns for one in marked))
    said = f"phases, of {of} in which devices are busy (work at the same time counts once): "
    return said + ", ".join(_phase(one) for one in marked)


def _phase(found: Phase) -> str:
    return f"{found.name} {percent(found.frac)} ({duration(found.busy_ns)})"


def _scopes(found: Scopes) -> str:
    first = ", ".join(f"{shortened(one.name)} {percent(one.frac)}" for one in found.scopes[:MOST])
    outside = found.outside_ns + found.unknown_ns
    said = f"by {found.source}, of {duration(found.of_ns)} of device work, added up: {first or 'none'}"
    return f"{said}; in no known {found.source} {percent(ratio(outside, found.of_ns))}"
