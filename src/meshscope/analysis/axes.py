"""Collectives by the axis of a mesh that they run along: groups of one size and one distance between their ranks.

On a mesh of 2 × 2 ranks groups 0–1 and 2–3 are of one axis (tensor parallelism, say), 0, 2 and 1, 3 of the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.in_steps import begun_in_steps, steps_of, working
from meshscope.analysis.parts import per_run
from meshscope.analysis.waiting import WindowWaits, waiting
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Kind, Window


@dataclass(frozen=True)
class Axis:
    """``groups`` are those that were seen, each by its ranks, and ``kinds`` what was called in them, ``count`` times.

    Times are of the mean profiled step and rank (window, where no step is whole): calls that run side by side count
    once, and ``exposed_ns`` have no compute beside them. ``wait_ns`` is None where it is not known of every call.
    """

    groups: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]
    count: int
    busy_ns: float
    exposed_ns: float
    wait_ns: float | None


@dataclass(frozen=True)
class _Part:
    group: tuple[int, ...]
    kinds: tuple[str, ...]
    count: int
    busy_ns: int
    exposed_ns: int
    wait_ns: int | None


@per_run
def axes(run: Run) -> tuple[Axis, ...]:
    """Longest first; empty where all groups that are told are of one axis."""
    windows = [window for window in working(run) if window.steps] or list(working(run))
    periods = sum(len(window.steps) for window in windows) or len(windows)
    waits = waiting(run).windows
    found: dict[tuple[int, ...], list[_Part]] = defaultdict(list)
    for window in windows:
        for part in _parts(window, waits.get(window)):
            found[tuple(rank - part.group[0] for rank in part.group)].append(part)
    if len(found) < 2:
        return ()
    return tuple(sorted((_axis(parts, periods) for parts in found.values()), key=lambda axis: -axis.busy_ns))


def _parts(window: Window, waits: WindowWaits | None) -> Iterator[_Part]:
    spans = window.spans
    for group in window.process_groups:
        if len(group.ranks) < 2 or group.name not in spans.groups:
            continue
        is_mine = (spans.kind == Kind.COLLECTIVE) & (spans.group == spans.groups.index(group.name))
        if window.steps:
            is_mine &= begun_in_steps(window, spans.start_ns)
        rows = np.flatnonzero(is_mine)
        if not len(rows):
            continue
        busy = union(spans.start_ns[rows], spans.end_ns[rows])
        busy = busy & steps_of(window) if window.steps else busy
        is_known = waits is not None and bool(np.isin(rows, waits.row).all())
        waited = waits.waiting(np.isin(waits.row, rows)) & busy if waits is not None and is_known else None
        yield _Part(
            group=group.ranks,
            kinds=tuple(spans.collectives[kind] for kind in np.unique(spans.collective[rows]).tolist() if kind >= 0),
            count=len(rows),
            busy_ns=busy.total_ns,
            exposed_ns=(busy - spans.busy(Kind.COMPUTE)).total_ns,
            wait_ns=None if waited is None else waited.total_ns,
        )


def _axis(parts: Sequence[_Part], periods: int) -> Axis:
    waited = [part.wait_ns for part in parts if part.wait_ns is not None]
    return Axis(
        groups=tuple(sorted({part.group for part in parts})),
        kinds=tuple(sorted({kind for part in parts for kind in part.kinds})),
        count=sum(part.count for part in parts),
        busy_ns=sum(part.busy_ns for part in parts) / periods,
        exposed_ns=sum(part.exposed_ns for part in parts) / periods,
        wait_ns=sum(waited) / periods if len(waited) == len(parts) else None,
    )
