"""Spans of one lane that lie in each other: which one is around a moment, and what each does by itself.

A thread's spans nest: one begins and ends within another or beside it. Their depth then follows from two sorts, so
that questions about a million spans take no loop over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Nest:
    """Spans of several lanes by (lane, depth): ``levels[lane][depth]`` numbers them in order of their start."""

    start_ns: Ints
    end_ns: Ints
    levels: dict[int, tuple[Ints, ...]]

    def innermost(self, lane: Ints, time_ns: Ints) -> Ints:
        """The number of the deepest span around each moment on its lane, −1 where there is none; shape of ``lane``."""
        return self._around(lane, time_ns, deepest_first=True)

    def outermost(self, lane: Ints, time_ns: Ints) -> Ints:
        return self._around(lane, time_ns, deepest_first=False)

    def _around(self, lane: Ints, time_ns: Ints, *, deepest_first: bool) -> Ints:
        found = np.full(len(lane), -1, dtype=np.int64)
        for one, levels in self.levels.items():
            asked = np.flatnonzero(lane == one)
            for level in reversed(levels) if deepest_first else levels:
                at = np.searchsorted(self.start_ns[level], time_ns[asked], side="right") - 1
                span = level[np.maximum(at, 0)]
                is_in = (at >= 0) & (self.end_ns[span] > time_ns[asked])
                found[asked[is_in]] = span[is_in]
                asked = asked[~is_in]
        return found

    def parents(self) -> Ints:
        """The number of the span directly around each, −1 for the outermost; shape (n,)."""
        found = np.full(len(self.start_ns), -1, dtype=np.int64)
        for levels in self.levels.values():
            for above, level in pairwise(levels):
                at = np.searchsorted(self.start_ns[above], self.start_ns[level], side="right") - 1
                found[level] = np.where(at >= 0, above[np.maximum(at, 0)], -1)
        return found

    def own_ns(self) -> Ints:
        """How long each lasts outside the spans directly in it, never less than nothing; shape (n,)."""
        length_ns = self.end_ns - self.start_ns
        inside_ns = np.zeros(len(length_ns), dtype=np.int64)
        parent = self.parents()
        has_parent = parent >= 0
        np.add.at(inside_ns, parent[has_parent], length_ns[has_parent])
        own_ns: Ints = np.maximum(length_ns - inside_ns, 0)
        return own_ns


def nest(lane: npt.NDArray[np.integer[Any]], start_ns: Ints, end_ns: Ints) -> Nest:
    """n spans in any order; spans without length are in nothing and around nothing."""
    levels = {}
    for one in np.unique(lane).tolist():
        mine = np.flatnonzero((lane == one) & (end_ns > start_ns))
        mine = mine[np.lexsort((-end_ns[mine], start_ns[mine]))]
        # Of the spans that began before, those that have not ended are around this one.
        depth = np.arange(len(mine)) - np.searchsorted(np.sort(end_ns[mine]), start_ns[mine], side="right")
        by_depth = np.argsort(depth, kind="stable")
        bounds = np.searchsorted(depth[by_depth], np.arange(int(depth.max(initial=-1)) + 2))
        levels[int(one)] = tuple(
            mine[by_depth[low:high]] for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        )
    return Nest(start_ns, end_ns, levels)
