"""The spans of one lane in order of their start: which covers a time, which is the longest, where one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from meshscope.analysis.coverage import Coverage
from meshscope.analysis.stack import Stack, stack

Ints = npt.NDArray[np.int64]

_FIRST_LOOK, _LOOK_FURTHER = 64, 4


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
        stop, size = int(np.searchsorted(self.start_ns, time_ns, side="right")), _FIRST_LOOK
        while stop > 0 and self.reach_ns[stop - 1] > time_ns:
            first = max(stop - size, 0)
            covering = np.flatnonzero(self.end_ns[first:stop] > time_ns)
            if len(covering):
                return first + int(covering[-1])
            stop, size = first, size * _LOOK_FURTHER
        return -1

    def between(self, start_ns: int, stop_ns: int) -> int:
        """A span in a stretch, the longest of those that are in it; −1 where there is none."""
        first = int(np.searchsorted(self.reach_ns, start_ns, side="right"))
        # A span without length reaches no further than where it begins.
        first = min(first, int(np.searchsorted(self.start_ns, start_ns, side="left")))
        last = int(np.searchsorted(self.start_ns, stop_ns, side="left"))
        starts, ends = self.start_ns[first:last], self.end_ns[first:last]
        inside = np.flatnonzero((ends > start_ns) | (starts >= start_ns))
        return first + int(inside[np.argmax((ends - starts)[inside])]) if len(inside) else -1

    def place(self, window: int, row: int, start_ns: int) -> int:
        """Where a span is among these, that begins at ``start_ns``; −1 where it is not."""
        first, last = np.searchsorted(self.start_ns, [start_ns, start_ns + 1]).tolist()
        found = np.flatnonzero((self.row[first:last] == row) & (self.window[first:last] == window))
        return first + int(found[0]) if len(found) else -1

    def begun_in(self, start_ns: int, stop_ns: int) -> tuple[int, int]:
        """The spans that begin in a stretch: the first of them, and the first after it."""
        first, last = np.searchsorted(self.start_ns, [start_ns, stop_ns]).tolist()
        return first, last

    def longest(self, first: int, last: int, after: int = -1, by: int = 1) -> int:
        """Of spans ``[first, last)`` the longest; or the one that comes after (``by`` −1: before) another in length.

        −1 where there is none. Of equally long ones the earlier comes first.
        """
        lengths = self.end_ns[first:last] - self.start_ns[first:last]
        if not len(lengths):
            return -1
        if not first <= after < last:
            return first + int(np.argmax(lengths))
        mine, places = lengths[after - first], np.arange(first, last)
        beyond = lengths < mine if by > 0 else lengths > mine
        beyond |= (lengths == mine) & ((places > after) if by > 0 else (places < after))
        found = places[beyond]
        if not len(found):
            return -1
        if by > 0:
            return int(found[np.argmax(lengths[beyond])])
        backward = found[::-1]
        return int(backward[np.argmin(lengths[beyond][::-1])])


def rows(start_ns: Ints, end_ns: Ints, window: npt.NDArray[np.int32], row: Ints) -> Rows:
    """Spans in any order."""
    if (start_ns[1:] < start_ns[:-1]).any():
        order = np.argsort(start_ns, kind="stable")
        start_ns, end_ns, window, row = start_ns[order], end_ns[order], window[order], row[order]
    reach_ns = np.maximum.accumulate(end_ns) if len(end_ns) else end_ns
    return Rows(start_ns, end_ns, reach_ns, window, row)


def joined(parts: Sequence[Rows]) -> Rows:
    """The spans of several lanes as those of one."""
    if len(parts) == 1:
        return parts[0]
    columns = ("start_ns", "end_ns", "window", "row")
    return rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


@dataclass(frozen=True, eq=False)
class Lane:
    """One line of a rank. ``layers`` are (meaning, what is covered by it), of which no two cover the same time.

    ``branch`` names the stream or thread that it is of, "" for all of them. ``parts`` are the spans of what it joins.
    """

    rank: int
    role: str
    layers: tuple[tuple[str, Coverage], ...]
    parts: tuple[Rows, ...]
    branch: str = ""

    @cached_property
    def rows(self) -> Rows:
        return joined(self.parts)

    @cached_property
    def drawn(self) -> tuple[tuple[str, Coverage], ...]:
        """The layers that cover anything."""
        return tuple(layer for layer in self.layers if len(layer[1]))

    @cached_property
    def stack(self) -> Stack | None:
        """``drawn`` laid into one another, where that can be."""
        return stack([covered for _, covered in self.drawn])

    def covered_ns(self, start_ns: int, stop_ns: int, *meanings: str) -> int:
        """How much of a stretch the layers of some meanings cover (of all of them when none is given)."""
        wanted = (covered for meaning, covered in self.layers if not meanings or meaning in meanings)
        return sum(covered.within(start_ns, stop_ns) for covered in wanted)
