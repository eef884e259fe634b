"""How much of any stretch some intervals cover, whatever its length: from a whole run down to single nanoseconds.

A column of a drawing that spans several bins is answered from a table of running totals at even distances, one
that does not from the intervals themselves: a frame costs the same for a thousand spans and for ten million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from meshscope.intervals import Intervals

Ns = npt.NDArray[np.int64]

BEFORE_ALL = np.int64(-(2**62))
_MOST_BINS = 1 << 17
_BINS_PER_COLUMN = 4


@dataclass(frozen=True, eq=False)
class Coverage:
    """n disjoint, sorted intervals, and running totals over them.

    ``start_ns`` is of shape (n,). ``before_ns`` (n + 1,) is what the first i intervals cover, ``closed_ns`` (n + 1,)
    where the i-th of them ends (the first entry is before all times). ``bins_ns`` holds what is covered up to
    ``first_ns + i · bin_ns``, ``counts`` how many intervals begin before that; both are empty for a few intervals.
    """

    start_ns: Ns
    before_ns: Ns
    closed_ns: Ns
    first_ns: int = 0
    bin_ns: int = 1
    bins_ns: Ns = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    counts: Ns = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> Ns:
        return self.closed_ns[1:]

    @property
    def intervals(self) -> Intervals:
        return Intervals(self.start_ns, self.end_ns)

    def upto(self, time_ns: Ns) -> Ns:
        """What is covered before each of some times; exact."""
        begun = self.start_ns.searchsorted(time_ns)
        covered: Ns = self.before_ns[begun] - np.maximum(self.closed_ns[begun] - time_ns, 0)
        return covered

    def within(self, start_ns: int, stop_ns: int) -> int:
        """What of a stretch is covered; exact."""
        return self._upto(stop_ns) - self._upto(start_ns)

    def _upto(self, time_ns: int) -> int:
        begun = self.start_ns.searchsorted(time_ns)
        return self.before_ns.item(begun) - max(self.closed_ns.item(begun) - time_ns, 0)

    def is_binned(self, edges_ns: Ns) -> bool:
        """Whether the columns between even edges are so long that the table of totals answers for them."""
        stretch_ns = int(edges_ns[-1] - edges_ns[0])
        return len(self.bins_ns) > 0 and stretch_ns >= _BINS_PER_COLUMN * self.bin_ns * (len(edges_ns) - 1)

    def fill_from_bins(self, edges: Ns, covered_ns: Ns) -> Ns:
        """Write what is covered before each edge, as the table has it; how many intervals begin in each column."""
        at, rest = np.divmod(np.clip(edges - self.first_ns, 0, self.bin_ns * (len(self.bins_ns) - 1)), self.bin_ns)
        after = np.minimum(at + 1, len(self.bins_ns) - 1)
        covered = self.bins_ns[at]
        covered_ns[:] = covered + (self.bins_ns[after] - covered) * rest // self.bin_ns
        begun: Ns = np.diff(self.counts[at + (rest > 0)])
        return begun


def columns(some: Sequence[Coverage], edges_ns: Ns) -> Ns:
    """What each of some coverages has of the columns between even edges, shape (coverages, edges − 1).

    It is more than nothing wherever anything is in a column; a time is exact to a fraction of a column.
    """
    covered_ns, closed_ns = (np.empty((len(some), len(edges_ns)), dtype=np.int64) for _ in range(2))
    begun: dict[int, Ns] = {}
    for at, one in enumerate(some):
        if len(one.bins_ns) and one.is_binned(edges_ns):
            begun[at] = one.fill_from_bins(edges_ns, covered_ns[at])
            closed_ns[at] = BEFORE_ALL
            continue
        place = one.start_ns.searchsorted(edges_ns)
        one.before_ns.take(place, out=covered_ns[at], mode="clip")
        one.closed_ns.take(place, out=closed_ns[at], mode="clip")
    # What has begun and not ended is covered up to the edge only.
    np.subtract(closed_ns, edges_ns, out=closed_ns)
    np.maximum(closed_ns, 0, out=closed_ns)
    np.subtract(covered_ns, closed_ns, out=covered_ns)
    # Into an array that is there: new ones of this size cost more than what is worked out.
    busy_ns = np.subtract(covered_ns[:, 1:], covered_ns[:, :-1], out=closed_ns[:, :-1])
    for at, count in begun.items():
        np.maximum(busy_ns[at], count > 0, out=busy_ns[at])
    return busy_ns


def coverage(busy: Intervals) -> Coverage:
    """With a table of totals where there are more intervals than it has bins."""
    before_ns = np.zeros(len(busy) + 1, dtype=np.int64)
    np.cumsum(busy.end_ns - busy.start_ns, out=before_ns[1:])
    closed_ns = np.concatenate(([BEFORE_ALL], busy.end_ns))
    found = Coverage(busy.start_ns, before_ns, closed_ns)
    if len(busy) <= _MOST_BINS:
        return found
    first_ns, last_ns = int(busy.start_ns[0]), int(busy.end_ns[-1])
    bin_ns = -(-(last_ns - first_ns) // _MOST_BINS)
    edges = first_ns + np.arange(_MOST_BINS + 1, dtype=np.int64) * bin_ns
    counts = busy.start_ns.searchsorted(edges)
    return Coverage(busy.start_ns, before_ns, closed_ns, first_ns, bin_ns, found.upto(edges), counts)
