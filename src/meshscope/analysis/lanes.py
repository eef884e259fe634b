"""A run as lanes of a timeline: for each rank its compute, collectives, copies, waits and host, by one clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from meshscope.analysis.coverage import Coverage, coverage
from meshscope.analysis.device_steps import device_step_ns
from meshscope.analysis.lane_rows import Lane, Rows, rows
from meshscope.analysis.parts import per_run
from meshscope.analysis.waiting import Waiting, waiting
from meshscope.intervals import EMPTY, Intervals, union
from meshscope.kinds import FRAME, is_any
from meshscope.run import Run
from meshscope.spans import Kind, Window

Ints = npt.NDArray[np.int64]

COMPUTE, COLLECTIVES, COPIES, WAITS, HOST = ROLES = ("compute", "collectives", "copies", "waits", "host")
"""The lanes of a rank from above; one that nothing is in is left out."""

ALL = "all"
"""The one line that a rank is folded to: what its device does, and what of its communication nothing hides."""

_DEVICE = (COMPUTE, COLLECTIVES, COPIES)
_KINDS: dict[str, tuple[Kind, ...]] = {
    COMPUTE: (Kind.COMPUTE,),
    COLLECTIVES: (Kind.COLLECTIVE,),
    COPIES: (Kind.COPY,),
    WAITS: (Kind.WAIT,),
    HOST: (Kind.LAUNCH, Kind.HOST),
}
_MEANING = {COPIES: "copy", WAITS: "wait"}

_NO_NS: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps that were profiled, of the rank that has most of them: ``number``, ``start_ns`` and ``end_ns`` (n,)."""

    number: Ints
    start_ns: Ints
    end_ns: Ints


@dataclass(frozen=True, eq=False)
class Late:
    """When a rank came to its matched collectives, ``at_ns`` (k,) in order; ``upto_ns`` (k + 1,) is how late till then.

    It is late by as much as it comes after the median rank.
    """

    at_ns: Ints
    upto_ns: Ints

    def within(self, start_ns: int, stop_ns: int) -> int:
        """The sum over the collectives to which it came in a stretch."""
        first, last = np.searchsorted(self.at_ns, [start_ns, stop_ns])
        return int(self.upto_ns[last] - self.upto_ns[first])


@dataclass(frozen=True, eq=False)
class Lanes:
    """``lanes`` by rank and role; ``windows`` are what the rows of all of them number.

    ``ahead_ns`` is what was taken off the times of each window, so that ranks stand on one clock; ``residual_ns`` is
    how far apart the ends of one collective still are at most (None where nothing tells). ``exposed``, ``late`` and
    ``folded`` (all of a rank in one lane) are by rank, and so is ``profiled``: beside it nothing was recorded, which is
    not idle. All spans and steps lie between ``start_ns`` and ``end_ns``.
    """

    lanes: tuple[Lane, ...]
    windows: tuple[Window, ...]
    ahead_ns: tuple[int, ...]
    steps: Steps
    exposed: dict[int, Coverage]
    late: dict[int, Late]
    folded: dict[int, Lane]
    profiled: dict[int, Coverage]
    start_ns: int
    end_ns: int
    residual_ns: int | None

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(self.by_rank)

    @cached_property
    def by_rank(self) -> dict[int, tuple[Lane, ...]]:
        found: dict[int, list[Lane]] = {}
        for lane in self.lanes:
            found.setdefault(lane.rank, []).append(lane)
        return {rank: tuple(some) for rank, some in found.items()}

    def lane(self, rank: int, role: str) -> Lane | None:
        """None where the rank has none of that role."""
        return next((lane for lane in self.by_rank.get(rank, ()) if lane.role == role), None)

    def times(self, window: int, row: int) -> tuple[int, int]:
        """Start and end of a span by the common clock."""
        spans, ahead_ns = self.windows[window].spans, self.ahead_ns[window]
        return int(spans.start_ns[row]) - ahead_ns, int(spans.end_ns[row]) - ahead_ns


@per_run
def lanes(run: Run) -> Lanes | None:
    """None where nothing was profiled, or nothing of it has a place on a lane."""
    windows = tuple(sorted(run.windows, key=lambda window: (window.rank, window.start_ns)))
    waits = waiting(run)
    ahead_ns = tuple(_ahead_ns(window, waits) for window in windows)
    by_rank: dict[int, list[tuple[int, Window, int]]] = defaultdict(list)
    for number, window in enumerate(windows):
        by_rank[window.rank].append((number, window, ahead_ns[number]))
    ranks = [_Rank(rank, mine, waits) for rank, mine in by_rank.items()]
    found = {one.rank: one.lanes() for one in ranks}
    if not any(found.values()):
        return None
    profiled = {one.rank: coverage(one.profiled()) for one in ranks}
    return Lanes(
        lanes=tuple(lane for some in found.values() for lane in some),
        windows=windows,
        ahead_ns=ahead_ns,
        steps=_steps(windows, ahead_ns),
        exposed={one.rank: coverage(one.exposed) for one in ranks},
        late={one.rank: one.late() for one in ranks},
        folded={rank: _folded(some) for rank, some in found.items() if some},
        profiled=profiled,
        start_ns=min(int(some.start_ns[0]) for some in profiled.values()),
        end_ns=max(int(some.end_ns[-1]) for some in profiled.values()),
        residual_ns=waits.residual_ns,
    )


def _ahead_ns(window: Window, waits: Waiting) -> int:
    """How far a window's clock is ahead in its middle; drift within a window is less than a column."""
    if window not in waits.windows:
        return 0
    middle = (window.start_ns + window.end_ns) // 2
    return middle - int(waits.windows[window].clock.common(np.array([middle], dtype=np.int64))[0])


def _extent(window: Window) -> tuple[int, int]:
    """From its first span or step to the end of its last, a nanosecond at least."""
    spans = window.spans
    bounds = device_step_ns(window)
    starts, ends = (spans.start_ns, bounds[:, 0]), (spans.end_ns, bounds[:, 1])
    first = min(int(some.min(initial=window.start_ns)) for some in starts)
    return first, max(first + 1, *(int(some.max(initial=window.end_ns)) for some in ends))


class _Rank:
    def __init__(self, rank: int, windows: Sequence[tuple[int, Window, int]], waits: Waiting) -> None:
        self.rank, self._windows, self._waits = rank, windows, waits
        self.exposed = self._joined(lambda window: window.spans.busy(Kind.COLLECTIVE) - window.spans.busy(Kind.COMPUTE))

    def lanes(self) -> list[Lane]:
        made = [(role, self._rows(role)) for role in ROLES]
        return [Lane(self.rank, role, self._layers(role, found), (found,)) for role, found in made if len(found)]

    def profiled(self) -> Intervals:
        """From the first to the last of what each window holds, its steps included."""
        edges = [(_extent(window), ahead_ns) for _, window, ahead_ns in self._windows]
        starts = np.array([start - ahead for (start, _), ahead in edges], dtype=np.int64)
        return union(starts, np.array([end - ahead for (_, end), ahead in edges], dtype=np.int64))

    def late(self) -> Late:
        found = [(self._waits.windows[w], ahead) for _, w, ahead in self._windows if w in self._waits.windows]
        at_ns = np.concatenate([_NO_NS, *(one.start_ns - ahead for one, ahead in found)])
        late_ns = np.concatenate([_NO_NS, *(one.late_ns for one, _ in found)])
        order = np.argsort(at_ns, kind="stable")
        return Late(at_ns[order], np.concatenate([[0], np.cumsum(late_ns[order])]))

    def _rows(self, role: str) -> Rows:
        starts, ends, numbers, found = [], [], [], []
        for number, window, ahead_ns in self._windows:
            spans = window.spans
            keep = is_any(spans.kind, _KINDS[role])
            if role == HOST and FRAME in spans.rules:
                keep &= spans.rule != spans.rules.index(FRAME)
            row = np.flatnonzero(keep)
            start_ns, end_ns = spans.start_ns[row], spans.end_ns[row]
            if role == WAITS:
                row, start_ns, end_ns = self._with_matched(window, row, start_ns, end_ns)
            starts.append(start_ns - ahead_ns)
            ends.append(end_ns - ahead_ns)
            numbers.append(np.full(len(row), number, dtype=np.int32))
            found.append(row)
        return rows(np.concatenate(starts), np.concatenate(ends), np.concatenate(numbers), np.concatenate(found))

    def _with_matched(self, window: Window, row: Ints, start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints, Ints]:
        """Recorded waits, and those parts of collectives in which they wait for a rank."""
        waits = self._waits.windows.get(window)
        if waits is None:
            return row, start_ns, end_ns
        keep = waits.wait_ns > 0
        begun = waits.start_ns[keep]
        parts = ((row, waits.row[keep]), (start_ns, begun), (end_ns, begun + waits.wait_ns[keep]))
        row, start_ns, end_ns = (np.concatenate(part) for part in parts)
        return row, start_ns, end_ns

    def _layers(self, role: str, found: Rows) -> tuple[tuple[str, Coverage], ...]:
        if role == COLLECTIVES:
            busy = self._joined(lambda window: window.spans.busy(Kind.COLLECTIVE))
            waits = self._joined(self._waiting) & self.exposed
            parts = (("hidden", busy - self.exposed), ("wait", waits), ("exposed", self.exposed - waits))
            return tuple((meaning, coverage(part)) for meaning, part in parts)
        return ((_MEANING.get(role, role), coverage(union(found.start_ns, found.end_ns))),)

    def _waiting(self, window: Window) -> Intervals:
        found = self._waits.windows.get(window)
        return found.waiting(np.ones(len(found.row), dtype=bool)) if found is not None else EMPTY

    def _joined(self, part: Callable[[Window], Intervals]) -> Intervals:
        found = [(part(window), ahead_ns) for _, window, ahead_ns in self._windows]
        starts = np.concatenate([some.start_ns - ahead_ns for some, ahead_ns in found])
        ends = np.concatenate([some.end_ns - ahead_ns for some, ahead_ns in found])
        return union(starts, ends)


def _folded(some: Sequence[Lane]) -> Lane:
    """The device's lanes of a rank as one; the first of all where the device has none."""
    device = {lane.role: lane for lane in some if lane.role in _DEVICE}
    if not device:
        return Lane(some[0].rank, ALL, some[0].layers, some[0].parts)
    layers = [layer for lane in device.values() for layer in lane.layers if layer[0] in ("compute", "wait", "exposed")]
    if COPIES in device:
        alone = device[COPIES].layers[0][1].intervals
        for role in (COMPUTE, COLLECTIVES):
            for _, covered in device[role].layers if role in device else ():
                alone -= covered.intervals
        layers.append(("copy", coverage(alone)))
    return Lane(some[0].rank, ALL, tuple(layers), tuple(part for lane in device.values() for part in lane.parts))


def _steps(windows: Sequence[Window], ahead_ns: Sequence[int]) -> Steps:
    by_rank: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for window, ahead in zip(windows, ahead_ns, strict=True):
        for number, (start, end) in zip(window.steps, device_step_ns(window).tolist(), strict=True):
            by_rank[window.rank].append((number, start - ahead, end - ahead))
    found = max(by_rank.values(), key=len, default=[])
    table = np.array(sorted(found, key=lambda row: row[1]), dtype=np.int64).reshape(-1, 3)
    return Steps(table[:, 0], table[:, 1], table[:, 2])
