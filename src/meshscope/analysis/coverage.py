"""How much of any stretch some intervals cover, whatever its length: from a whole run down to single nanoseconds.

A column of a drawing that spans several bins is answered from a table of running totals at even distances, one
that does not from the intervals themselves: a frame costs the same for a thousand spans and for ten million.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from meshscope.intervals import Intervals

Ns = npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]

_MOST_BINS = 1 << 17
_BINS_PER_COLUMN = 4


@dataclass(frozen=True, eq=False)
class Coverage:
    """Disjoint, sorted intervals ``start_ns``, ``end_ns`` of shape (n,), and running totals over them.

    ``before_ns`` (n + 1,) is what the first i intervals cover. ``bins_ns`` holds what is covered up to
    ``first_ns + i · bin_ns``, ``counts`` how many intervals begin before that; both are empty for a few intervals.
    """

    start_ns: Ns
    end_ns: Ns
    before_ns: Ns
    first_ns: int = 0
    bin_ns: int = 1
    bins_ns: Ns = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    counts: Ns = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def intervals(self) -> Intervals:
        return Intervals(self.start_ns, self.end_ns)

    def upto(self, time_ns: Ns) -> Ns:
        """What is covered before each of some times; exact."""
        return self._upto(time_ns)[0]

    def _upto(self, time_ns: Ns) -> tuple[Ns, Ns]:
        """The same, and how many intervals begin before each time."""
        begun = np.searchsorted(self.start_ns, time_ns, side="left")
        if not len(self.start_ns):
            return np.zeros(len(time_ns), dtype=np.int64), begun
        open_ns = np.maximum(self.end_ns[np.maximum(begun - 1, 0)] - time_ns, 0)
        return self.before_ns[begun] - np.where(begun > 0, open_ns, 0), begun

    def totals(self, edges_ns: Ns) -> tuple[Ns, Ns]:
        """Before each of some even edges: what is covered, to a fraction of a column, and how many intervals begin."""
        span_ns = int(edges_ns[-1] - edges_ns[0])
        if len(self.bins_ns) and span_ns >= _BINS_PER_COLUMN * self.bin_ns * (len(edges_ns) - 1):
            return self._from_bins(edges_ns)
        return self._upto(edges_ns)

    def columns(self, edges_ns: Ns) -> tuple[Shares, npt.NDArray[np.bool_]]:
        """Of the columns between even edges: the share covered, shape (edges − 1,), and whether anything is there."""
        covered, begun = self.totals(edges_ns)
        busy = covered[1:] - covered[:-1]
        return busy / (edges_ns[1:] - edges_ns[:-1]), (busy > 0) | (begun[1:] > begun[:-1])

    def _from_bins(self, edges: Ns) -> tuple[Ns, Ns]:
        at, rest = np.divmod(np.clip(edges - self.first_ns, 0, self.bin_ns * (len(self.bins_ns) - 1)), self.bin_ns)
        after = np.minimum(at + 1, len(self.bins_ns) - 1)
        covered = self.bins_ns[at]
        return covered + (self.bins_ns[after] - covered) * rest // self.bin_ns, self.counts[at + (rest > 0)]


def coverage(busy: Intervals) -> Coverage:
    """With a table of totals where there are more intervals than it has bins."""
    before_ns = np.zeros(len(busy) + 1, dtype=np.int64)
    np.cumsum(busy.end_ns - busy.start_ns, out=before_ns[1:])
    found = Coverage(busy.start_ns, busy.end_ns, before_ns)
    if len(busy) <= _MOST_BINS:
        return found
    first_ns, last_ns = int(busy.start_ns[0]), int(busy.end_ns[-1])
    bin_ns = -(-(last_ns - first_ns) // _MOST_BINS)
    bins_ns, counts = found._upto(first_ns + np.arange(_MOST_BINS + 1, dtype=np.int64) * bin_ns)
    return Coverage(busy.start_ns, busy.end_ns, before_ns, first_ns, bin_ns, bins_ns, counts)
