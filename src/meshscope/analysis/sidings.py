"""Unions of many sets of intervals at once: each set is moved to a stretch of time of its own, where it meets no other.

One union over all of them then takes the place of one for each set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.intervals import Intervals, difference, union

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sidings:
    """Several sets of intervals side by side; ``moved`` holds set k from ``k * width_ns`` on."""

    moved: Intervals
    origin_ns: int
    width_ns: int

    def total_ns(self, sets: int) -> Ints:
        """The length of each set, shape (sets,)."""
        total_ns = np.zeros(sets, dtype=np.int64)
        np.add.at(total_ns, self.moved.start_ns // self.width_ns, self.moved.end_ns - self.moved.start_ns)
        return total_ns

    def without(self, number: Ints, start_ns: Ints, end_ns: Ints) -> Sidings:
        """Each set less the intervals of its ``number``, which lie within the time that all sets cover."""
        at_ns = number * self.width_ns - self.origin_ns
        taken = union(start_ns + at_ns, end_ns + at_ns)
        return Sidings(difference(self.moved, taken), self.origin_ns, self.width_ns)


def apart(number: Ints, start_ns: Ints, end_ns: Ints) -> Sidings:
    """Intervals by the set that each is of: ``number`` (k,) counts sets from 0."""
    if not len(number):
        return Sidings(union(start_ns, end_ns), 0, 1)
    origin_ns = int(start_ns.min())
    width_ns = int(end_ns.max()) - origin_ns + 1
    at_ns = number * width_ns - origin_ns
    return Sidings(union(start_ns + at_ns, end_ns + at_ns), origin_ns, width_ns)
