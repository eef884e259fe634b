"""What waited for what, as a graph of moments: each comes a fixed time after the last of those that it depends on.

A moment is the beginning or end of a piece of work, a launch, or a return from a wait. Its weight is how long after the
last of its predecessors it came; what no dependency explains (an operator's Python, the latency of a launch) is in
there and stays as it was. So a replay with nothing changed gives back every measured time exactly, and because times
are sums and maxima, nothing that is made faster can make anything later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Part(IntEnum):
    """What the time before a moment was. ``WAITED`` is communication in which waiting for peers is not told apart."""

    START = 0
    COMPUTE = 1
    TRANSFER = 2
    WAITED = 3
    COPY = 4
    LAUNCH = 5
    HOST = 6
    DELAY = 7
    MEETING = 8


class Turn(IntEnum):
    """Which moment of several at one nanosecond comes first."""

    DEVICE = 0
    RETURN = 1
    CALL = 2
    STEP_END = 3
    END = 4


@dataclass(frozen=True, eq=False)
class Graph:
    """n moments in an order in which predecessors come first; columns of shape (n,), the last is the end of all.

    ``first`` (n + 1,) bounds the predecessors of each in ``before`` (m,). ``window`` and ``row`` say of which span the
    moment is (−1 for none), ``rank`` of which rank. Moment 0 is the start; one without predecessors keeps its time.
    """

    time_ns: Ints
    weight_ns: Ints
    part: npt.NDArray[np.uint8]
    rank: Ints
    window: Ints
    row: Ints
    first: Ints
    before: Ints

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def start_ns(self) -> int:
        return int(self.time_ns[0])

    @property
    def length_ns(self) -> int:
        return int(self.time_ns[-1]) - self.start_ns


@dataclass
class Draft:
    """A graph while it is made: moments are numbered as they come."""

    start_ns: int
    time_ns: list[Ints] = field(default_factory=list)
    columns: list[tuple[int, int, int, int]] = field(default_factory=list)
    rows: list[Ints] = field(default_factory=list)
    ties: list[Ints] = field(default_factory=list)
    edges: list[tuple[Ints, Ints]] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.add(np.array([self.start_ns]), Part.START, Turn.DEVICE)

    def add(
        self,
        time_ns: Ints,
        part: Part,
        turn: Turn,
        *,
        rank: int = -1,
        window: int = -1,
        row: Ints | None = None,
        place: int = 0,
    ) -> Ints:
        """The numbers of new moments. ``place`` is that among the moments of one span: its start 0, its end 3."""
        rows = np.full(len(time_ns), -1, dtype=np.int64) if row is None else row
        self.time_ns.append(time_ns.astype(np.int64))
        self.columns.append((int(part), int(turn), rank, window))
        self.rows.append(rows)
        self.ties.append(4 * rows + place)
        self.count += len(time_ns)
        return np.arange(self.count - len(time_ns), self.count)

    def depend(self, after: Ints, before: Ints) -> None:
        """``after[i]`` depends on ``before[i]``, on nothing if that is −1; what contradicts the times is left out."""
        known = before >= 0
        self.edges.append((before[known], after[known]))

    def in_order(self, moments: Ints) -> Ints:
        """Some moments in the order in which the graph has them."""
        first = np.cumsum([0, *(len(some) for some in self.time_ns)])
        chunk = np.searchsorted(first, moments, side="right") - 1
        keys = np.empty((3, len(moments)), dtype=np.int64)
        for one in np.unique(chunk).tolist():
            mine = chunk == one
            at = moments[mine] - first[one]
            keys[:, mine] = self.ties[one][at], np.full(len(at), self.columns[one][1]), self.time_ns[one][at]
        return moments[np.lexsort(tuple(keys))]

    def _keys(self) -> tuple[Ints, Ints, Ints]:
        turn = np.repeat(
            np.array([one[1] for one in self.columns], dtype=np.int64), [len(some) for some in self.time_ns]
        )
        return np.concatenate(self.ties), turn, np.concatenate(self.time_ns)

    def graph(self, parts: dict[Part, Ints], ends: Ints) -> Graph:
        """All of it, with an end that depends on ``ends`` and on every moment that nothing depends on.

        ``parts`` names the moments that are of another part than they were added with.
        """
        latest_ns = max(int(some.max()) for some in self.time_ns if len(some))
        end = self.add(np.array([latest_ns]), Part.DELAY, Turn.END)
        ties, turn, time_ns = self._keys()
        part, rank, window = (
            np.repeat(np.array([one[at] for one in self.columns], dtype=np.int64), [len(some) for some in self.time_ns])
            for at in (0, 2, 3)
        )
        for name, moments in parts.items():
            part[moments] = name
        order = np.lexsort((ties, turn, time_ns))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        before, after = self._edges(time_ns, place, ends, int(end[0]))
        weight_ns, part = _weights(time_ns, part, before, after)
        by_after = np.argsort(place[after], kind="stable")
        return Graph(
            time_ns=time_ns[order],
            weight_ns=weight_ns[order],
            part=part[order].astype(np.uint8),
            rank=rank[order],
            window=window[order],
            row=np.concatenate(self.rows)[order],
            first=np.searchsorted(place[after][by_after], np.arange(len(order) + 1)),
            before=place[before][by_after],
        )

    def _edges(self, time_ns: Ints, place: Ints, ends: Ints, end: int) -> tuple[Ints, Ints]:
        before = np.concatenate([one for one, _ in self.edges] or [np.empty(0, dtype=np.int64)])
        after = np.concatenate([one for _, one in self.edges] or [np.empty(0, dtype=np.int64)])
        keep = place[before] < place[after]
        before, after = before[keep], after[keep]
        is_bound = np.zeros(len(place), dtype=bool)
        is_bound[after] = True
        is_bound[[0, end]] = True
        # What depends on nothing comes a fixed time after the start; before the start nothing can change.
        loose = np.flatnonzero(~is_bound & (time_ns >= self.start_ns) & (place > place[0]))
        has_next = np.zeros(len(place), dtype=bool)
        has_next[before] = True
        has_next[end] = True
        last = np.unique(np.concatenate((ends, np.flatnonzero(~has_next))))
        pairs = np.stack(
            (
                np.concatenate((before, np.zeros(len(loose), dtype=np.int64), last)),
                np.concatenate((after, loose, np.full(len(last), end))),
            ),
            axis=1,
        )
        pairs = np.unique(pairs, axis=0)
        return pairs[:, 0], pairs[:, 1]


def _weights(time_ns: Ints, part: Ints, before: Ints, after: Ints) -> tuple[Ints, Ints]:
    """How long after its last predecessor each came; a piece of work after its launch has the launch's latency."""
    latest_ns = np.full(len(time_ns), np.iinfo(np.int64).min)
    np.maximum.at(latest_ns, after, time_ns[before])
    has_any = latest_ns > np.iinfo(np.int64).min
    by_call = np.zeros(len(time_ns), dtype=bool)
    is_last = time_ns[before] == latest_ns[after]
    by_call[after[is_last & (part[before] == Part.HOST)]] = True
    part = np.where((part == Part.DELAY) & by_call, Part.LAUNCH, part)
    return np.where(has_any, time_ns - np.where(has_any, latest_ns, 0), 0), part
