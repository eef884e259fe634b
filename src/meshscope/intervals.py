"""Half-open integer intervals ``[start, end)`` as sorted, disjoint numpy columns.

Everything that is a share of time goes through here: union before adding, so that two kernels at once are one
busy interval. Complexity is that of one sort; all arithmetic is int64, so answers are exact to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from meshscope import fast

Ns = npt.NDArray[np.int64]

_NONE: Ns = np.empty(0, dtype=np.int64)
_ZERO: Ns = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Disjoint, sorted, non-touching, non-empty intervals; ``start_ns`` and ``end_ns`` have equal shape (n,)."""

    start_ns: Ns
    end_ns: Ns

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def total_ns(self) -> int:
        return int((self.end_ns - self.start_ns).sum())

    def __or__(self, other: Intervals) -> Intervals:
        return union(np.concatenate((self.start_ns, other.start_ns)), np.concatenate((self.end_ns, other.end_ns)))

    def __and__(self, other: Intervals) -> Intervals:
        return intersection(self, other)

    def __sub__(self, other: Intervals) -> Intervals:
        return difference(self, other)


EMPTY = Intervals(_NONE, _NONE)


def union(start_ns: Ns, end_ns: Ns) -> Intervals:
    """The points covered by at least one of n intervals in any order; empty and negative ones add nothing."""
    swept = _swept_union(start_ns, end_ns) if _is_for_a_sweep(len(start_ns)) else None
    if swept is not None:
        return swept
    keep = end_ns > start_ns
    start_ns, end_ns = start_ns[keep], end_ns[keep]
    if not len(start_ns):
        return EMPTY
    if (start_ns[1:] >= start_ns[:-1]).all():
        end_ns = np.maximum.accumulate(end_ns)
    else:
        # Each on its own: before the i-th start in order lie i starts, and there is a gap only if as many ends do.
        start_ns, end_ns = np.sort(start_ns), np.sort(end_ns)
    # Where one begins; and so also, one place before, where the one before it ends.
    begins = np.empty(len(start_ns) + 1, dtype=bool)
    begins[0] = begins[-1] = True
    np.greater(start_ns[1:], end_ns[:-1], out=begins[1:-1])
    if begins.all():
        return Intervals(start_ns, end_ns)
    return Intervals(start_ns[begins[:-1]], end_ns[begins[1:]])


def together(parts: Sequence[Intervals]) -> Intervals:
    """The points in any of several: one union, whatever their number."""
    some = [part for part in parts if len(part)]
    if len(some) < 2:
        return some[0] if some else EMPTY
    return union(np.concatenate([part.start_ns for part in some]), np.concatenate([part.end_ns for part in some]))


def intersection(a: Intervals, b: Intervals) -> Intervals:
    """The points in both."""
    if not len(a) or not len(b):
        return EMPTY
    if _is_for_a_sweep(len(a) + len(b)):
        return _swept_intersection(a, b)
    if len(b) == 1:
        return _clipped(a, int(b.start_ns[0]), int(b.end_ns[0]))
    if len(a) == 1:
        return _clipped(b, int(a.start_ns[0]), int(a.end_ns[0]))
    # Every pair that overlaps: b's intervals that end after a's start and start before a's end.
    low = b.end_ns.searchsorted(a.start_ns, side="right")
    count = b.start_ns.searchsorted(a.end_ns, side="left") - low
    np.maximum(count, 0, out=count)
    upto = count.cumsum()
    left = np.arange(len(a)).repeat(count)
    right = np.arange(int(upto[-1])) + (low - upto + count).repeat(count)
    return Intervals(np.maximum(a.start_ns[left], b.start_ns[right]), np.minimum(a.end_ns[left], b.end_ns[right]))


def _clipped(a: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """What of them lies in one stretch."""
    first = int(a.end_ns.searchsorted(start_ns, side="right"))
    last = int(a.start_ns.searchsorted(end_ns, side="left"))
    if first >= last:
        return EMPTY
    # Copies: a view would keep all of them alive.
    starts, ends = a.start_ns[first:last].copy(), a.end_ns[first:last].copy()
    starts[0], ends[-1] = max(int(starts[0]), start_ns), min(int(ends[-1]), end_ns)
    return Intervals(starts, ends)


def common_ns(ones: Sequence[Intervals], others: Sequence[Intervals]) -> int:
    """How much the first have in common, the second, and so on, added up.

    The pairs are laid out one behind the other, which makes one intersection of thousands.
    """
    pairs = [(one, other) for one, other in zip(ones, others, strict=True) if len(one) and len(other)]
    if not pairs:
        return 0
    start_ns = [min(int(one.start_ns[0]), int(other.start_ns[0])) for one, other in pairs]
    end_ns = [max(int(one.end_ns[-1]), int(other.end_ns[-1])) for one, other in pairs]
    lengths = [end - start + 1 for start, end in zip(start_ns, end_ns, strict=True)]
    shifts = [at - start for start, at in zip(start_ns, accumulate(lengths, initial=0), strict=False)]
    return intersection(*(_laid_out(column, shifts) for column in zip(*pairs, strict=True))).total_ns


def _laid_out(parts: Sequence[Intervals], shifts: Sequence[int]) -> Intervals:
    by_ns = np.repeat(np.array(shifts, dtype=np.int64), [len(part) for part in parts])
    starts, ends = (np.concatenate([getattr(part, name) for part in parts]) for name in ("start_ns", "end_ns"))
    return Intervals(starts + by_ns, ends + by_ns)


def _is_for_a_sweep(count: int) -> bool:
    return fast.is_worth(count, fast.WORTH_SPANS)


def _swept_union(start_ns: Ns, end_ns: Ns) -> Intervals | None:
    """The union of intervals in order of start; None when they are in another."""
    from meshscope.sweeps import united

    starts, ends = np.empty(len(start_ns), dtype=np.int64), np.empty(len(start_ns), dtype=np.int64)
    count = united(start_ns, end_ns, starts, ends)
    return Intervals(starts[:count].copy(), ends[:count].copy()) if count >= 0 else None


def _swept_intersection(a: Intervals, b: Intervals) -> Intervals:
    from meshscope.sweeps import shared

    starts, ends = np.empty(len(a) + len(b), dtype=np.int64), np.empty(len(a) + len(b), dtype=np.int64)
    count = shared(a.start_ns, a.end_ns, b.start_ns, b.end_ns, starts, ends)
    return Intervals(starts[:count].copy(), ends[:count].copy())


def difference(a: Intervals, b: Intervals) -> Intervals:
    """The points in ``a`` that are not in ``b``."""
    if not len(a) or not len(b):
        return a
    low, high = int(a.start_ns[0]), int(a.end_ns[-1])
    return intersection(a, complement(b, low, high))


def complement(a: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """The points of ``[start_ns, end_ns)`` that are not in ``a``."""
    starts, ends = np.empty(len(a) + 1, dtype=np.int64), np.empty(len(a) + 1, dtype=np.int64)
    starts[0], ends[-1] = start_ns, end_ns
    np.maximum(a.end_ns, start_ns, out=starts[1:])
    np.minimum(a.start_ns, end_ns, out=ends[:-1])
    keep = ends > starts
    return Intervals(starts, ends) if keep.all() else Intervals(starts[keep], ends[keep])


def window(a: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """The part of ``a`` inside ``[start_ns, end_ns)``."""
    return _clipped(a, start_ns, end_ns) if end_ns > start_ns else EMPTY


def covered_ns(a: Intervals, start_ns: Ns, end_ns: Ns) -> Ns:
    """How much of ``a`` lies inside each ``[start_ns, end_ns)``; three columns of shape (k,), none of them sorted."""
    if not len(a):
        return np.zeros(len(start_ns), dtype=np.int64)
    before_ns = np.concatenate((_ZERO, np.cumsum(a.end_ns - a.start_ns)))

    def until(at_ns: Ns) -> Ns:
        ended = np.searchsorted(a.end_ns, at_ns, side="right")
        begun_ns = at_ns - a.start_ns[np.minimum(ended, len(a) - 1)]
        found: Ns = before_ns[ended] + np.where(ended < len(a), np.maximum(begun_ns, 0), 0)
        return found

    return until(end_ns) - until(start_ns)
