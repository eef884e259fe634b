"""Sweeps over sorted intervals, compiled: one pass where numpy needs several. For :mod:`meshscope.intervals` alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meshscope.fast import compiled

Ns = npt.NDArray[np.int64]


@compiled
def united(start_ns: Ns, end_ns: Ns, starts: Ns, ends: Ns) -> int:
    """Writes the union of n intervals in order of start to ``starts`` and ``ends``; gives its length.

    −1, with nothing of worth written, when they are in no order.
    """
    count = 0
    before = np.int64(-(2**63))
    open_ns, close_ns = np.int64(0), np.int64(-(2**63))
    for row in range(len(start_ns)):
        start, end = start_ns[row], end_ns[row]
        if start < before:
            return -1
        before = start
        if end <= start:
            continue
        if start > close_ns or count == 0:
            if count:
                starts[count - 1], ends[count - 1] = open_ns, close_ns
            count += 1
            open_ns, close_ns = start, end
        elif end > close_ns:
            close_ns = end
    if count:
        starts[count - 1], ends[count - 1] = open_ns, close_ns
    return count


@compiled
def shared(a_start: Ns, a_end: Ns, b_start: Ns, b_end: Ns, starts: Ns, ends: Ns) -> int:
    """Writes what two unions share; gives its length. At most len(a) + len(b) − 1 intervals are shared."""
    count = left = right = 0
    while left < len(a_start) and right < len(b_start):
        start, end = max(a_start[left], b_start[right]), min(a_end[left], b_end[right])
        if start < end:
            starts[count], ends[count] = start, end
            count += 1
        if a_end[left] <= b_end[right]:
            left += 1
        else:
            right += 1
    return count
