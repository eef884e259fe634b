"""Collectives by the groups of ranks that call them, where a mesh has several axes."""

from __future__ import annotations

from meshscope.analysis.axes import Axis
from meshscope.reports.columns import table, wrapped
from meshscope.units import UNKNOWN, milliseconds, percent, ranges, ratio

_MOST_GROUPS = 2


def axes_lines(found: tuple[Axis, ...], wait: str) -> list[str]:
    """Empty where there is one axis alone. ``wait`` is what waiting is called: see ``waiting_words.wait_name``."""
    if not found:
        return []
    rows = [
        (
            _groups(axis),
            str(axis.count),
            milliseconds(axis.busy_ns),
            percent(ratio(axis.busy_ns - axis.exposed_ns, axis.busy_ns)),
            milliseconds(axis.exposed_ns),
            UNKNOWN if axis.wait_ns is None else milliseconds(axis.wait_ns),
        )
        for axis in found
    ]
    said = "collectives by the groups of ranks that call them (groups × ranks in each): "
    said += "; ".join(f"{_groups(axis)}: {', '.join(kind.replace('_', '-') for kind in axis.kinds)}" for axis in found)
    heading = ("groups", "calls", "ms", "hidden", "exposed ms", f"{wait} ms")
    return [*wrapped(said), *table(heading, rows, indent="    ")]


def _groups(axis: Axis) -> str:
    """``2 × 2 (0–1; 2–3)``."""
    some = "; ".join(ranges(group) for group in axis.groups[:_MOST_GROUPS])
    more = "; …" if len(axis.groups) > _MOST_GROUPS else ""
    return f"{len(axis.groups)} × {len(axis.groups[0])} ({some}{more})"
