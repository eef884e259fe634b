"""A run as lanes of a timeline: for each rank its compute, collectives, copies, waits and host, by one clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.coverage import Coverage, coverage
from meshscope.analysis.parts import per_run
from meshscope.analysis.waiting import Waiting, waiting
from meshscope.intervals import EMPTY, Intervals, union
from meshscope.kinds import FRAME, is_any
from meshscope.run import Run
from meshscope.spans import Kind, Window

Ints = npt.NDArray[np.int64]

COMPUTE, COLLECTIVES, COPIES, WAITS, HOST = ROLES = ("compute", "collectives", "copies", "waits", "host")
"""The lanes of a rank from above; one that nothing is in is left out."""

_KINDS: dict[str, tuple[Kind, ...]] = {
    COMPUTE: (Kind.COMPUTE,),
    COLLECTIVES: (Kind.COLLECTIVE,),
    COPIES: (Kind.COPY,),
    WAITS: (Kind.WAIT,),
    HOST: (Kind.LAUNCH, Kind.HOST),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """n spans of a lane as columns of shape (n,), in order of their start, by the common clock.

    ``reach_ns`` is the latest end up to each; ``window`` numbers the windows of the timeline, ``row`` their spans.
    """

    start_ns: Ints
    end_ns: Ints
    reach_ns: Ints
    window: npt.NDArray[np.int32]
    row: Ints

    def __len__(self) -> int:
        return len(self.start_ns)

    def at(self, time_ns: int) -> int:
        """The span that covers a time: of several the one that began last; −1 where there is none."""
        place = int(np.searchsorted(self.start_ns, time_ns, side="right")) - 1
        while place >= 0 and self.reach_ns[place] > time_ns:
            if self.end_ns[place] > time_ns:
                return place
            place -= 1
        return -1

    def between(self, start_ns: int, stop_ns: int) -> int:
        """A span in a stretch, the longest of those that are in it; −1 where there is none."""
        first = int(np.searchsorted(self.reach_ns, start_ns, side="right"))
        last = int(np.searchsorted(self.start_ns, stop_ns, side="left"))
        inside = np.arange(first, last)
        inside = inside[self.end_ns[first:last] > start_ns]
        if not len(inside):
            return -1
        return int(inside[np.argmax(self.end_ns[inside] - self.start_ns[inside])])


@dataclass(frozen=True, eq=False)
class Lane:
    """One line of a rank. ``layers`` are (meaning, what is covered by it), of which no two cover the same time."""

    rank: int
    role: str
    layers: tuple[tuple[str, Coverage], ...]
    rows: Rows


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps that were profiled, of the rank that has most of them: ``number``, ``start_ns`` and ``end_ns`` (n,)."""

    number: Ints
    start_ns: Ints
    end_ns: Ints


@dataclass(frozen=True, eq=False)
class Lanes:
    """``lanes`` by rank and role; ``windows`` are what the rows of all of them number.

    ``ahead_ns`` is what was taken off the times of each window, so that ranks stand on one clock; ``residual_ns`` is
    how far apart the ends of one collective still are at most (None where nothing tells). ``exposed`` is by rank.
    """

    lanes: tuple[Lane, ...]
    windows: tuple[Window, ...]
    ahead_ns: tuple[int, ...]
    steps: Steps
    exposed: dict[int, Intervals]
    start_ns: int
    end_ns: int
    residual_ns: int | None

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(lane.rank for lane in self.lanes))


@per_run
def lanes(run: Run) -> Lanes | None:
    """None where nothing was profiled."""
    windows = tuple(sorted(run.windows, key=lambda window: (window.rank, window.start_ns)))
    if not windows:
        return None
    waits = waiting(run)
    ahead_ns = tuple(_ahead_ns(window, waits) for window in windows)
    by_rank: dict[int, list[int]] = defaultdict(list)
    for number, window in enumerate(windows):
        by_rank[window.rank].append(number)
    found: list[Lane] = []
    exposed: dict[int, Intervals] = {}
    for rank, numbers in by_rank.items():
        drawn = _Rank(rank, [(number, windows[number], ahead_ns[number]) for number in numbers], waits)
        found += drawn.lanes()
        exposed[rank] = drawn.exposed
    times = [(w.start_ns - ahead, w.end_ns - ahead) for w, ahead in zip(windows, ahead_ns, strict=True)]
    return Lanes(
        tuple(found),
        windows,
        ahead_ns,
        _steps(windows, ahead_ns),
        exposed,
        min(start for start, _ in times),
        max(end for _, end in times),
        waits.residual_ns,
    )


def _ahead_ns(window: Window, waits: Waiting) -> int:
    """How far a window's clock is ahead in its middle; drift within a window is less than a column."""
    if window not in waits.windows:
        return 0
    middle = (window.start_ns + window.end_ns) // 2
    return middle - int(waits.windows[window].clock.common(np.array([middle], dtype=np.int64))[0])


class _Rank:
    def __init__(self, rank: int, windows: Sequence[tuple[int, Window, int]], waits: Waiting) -> None:
        self._rank, self._windows, self._waits = rank, windows, waits
        self.exposed = self._joined(lambda window: window.spans.busy(Kind.COLLECTIVE) - window.spans.busy(Kind.COMPUTE))

    def lanes(self) -> list[Lane]:
        made = [(role, self._rows(role)) for role in ROLES]
        return [Lane(self._rank, role, self._layers(role), rows) for role, rows in made if len(rows)]

    def _rows(self, role: str) -> Rows:
        starts, ends, numbers, rows = [], [], [], []
        for number, window, ahead_ns in self._windows:
            spans = window.spans
            keep = is_any(spans.kind, _KINDS[role])
            if role == HOST and FRAME in spans.rules:
                keep &= spans.rule != spans.rules.index(FRAME)
            row = np.flatnonzero(keep)
            row = row[np.argsort(spans.start_ns[row], kind="stable")]
            starts.append(spans.start_ns[row] - ahead_ns)
            ends.append(spans.end_ns[row] - ahead_ns)
            numbers.append(np.full(len(row), number, dtype=np.int32))
            rows.append(row)
        start_ns, end_ns = np.concatenate(starts), np.concatenate(ends)
        reach_ns = np.maximum.accumulate(end_ns) if len(end_ns) else end_ns
        return Rows(start_ns, end_ns, reach_ns, np.concatenate(numbers), np.concatenate(rows).astype(np.int64))

    def _layers(self, role: str) -> tuple[tuple[str, Coverage], ...]:
        if role == COLLECTIVES:
            busy = self._joined(lambda window: window.spans.busy(Kind.COLLECTIVE))
            waits = self._joined(self._waiting) & self.exposed
            parts = (("hidden", busy - self.exposed), ("wait", waits), ("exposed", self.exposed - waits))
            return tuple((meaning, coverage(part)) for meaning, part in parts)
        meaning = {COPIES: "copy", WAITS: "wait", HOST: "host"}.get(role, role)
        return ((meaning, coverage(self._joined(lambda window: window.spans.busy(*_KINDS[role])))),)

    def _waiting(self, window: Window) -> Intervals:
        found = self._waits.windows.get(window)
        return found.waiting(np.ones(len(found.row), dtype=bool)) if found is not None else EMPTY

    def _joined(self, part: Callable[[Window], Intervals]) -> Intervals:
        found = [(part(window), ahead_ns) for _, window, ahead_ns in self._windows]
        starts = np.concatenate([some.start_ns - ahead_ns for some, ahead_ns in found])
        ends = np.concatenate([some.end_ns - ahead_ns for some, ahead_ns in found])
        return union(starts, ends)


def _steps(windows: Sequence[Window], ahead_ns: Sequence[int]) -> Steps:
    by_rank: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for window, ahead in zip(windows, ahead_ns, strict=True):
        for number, (start, end) in zip(window.steps, window.step_ns.tolist(), strict=True):
            by_rank[window.rank].append((number, start - ahead, end - ahead))
    rows = max(by_rank.values(), key=len, default=[])
    table = np.array(sorted(rows, key=lambda row: row[1]), dtype=np.int64).reshape(-1, 3)
    return Steps(table[:, 0], table[:, 1], table[:, 2])
