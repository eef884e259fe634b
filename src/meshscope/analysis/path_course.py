"""When the critical path is on which rank, from its beginning to its end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.critical_path import CriticalPath

Floats = npt.NDArray[np.float64]

POINTS = 1024


@dataclass(frozen=True, eq=False)
class RankCourse:
    """The path is on ``rank`` for ``total_ns`` in ``legs`` stretches.

    ``passed_ns`` (POINTS + 1,) is how much of that has passed at equally many moments, from the path's beginning to its
    end.
    """

    rank: int
    total_ns: int
    legs: int
    passed_ns: Floats


def courses(path: CriticalPath, most: int) -> tuple[RankCourse, ...]:
    """Of the ``most`` ranks that have most of the path, by rank."""
    ranks = sorted(path.by_rank, key=lambda rank: (-path.by_rank[rank], rank))[:most]
    legs = np.array([(leg.rank, leg.from_ns, leg.to_ns) for leg in path.legs], dtype=np.int64).reshape(-1, 3)
    return tuple(_course(path, rank, legs[legs[:, 0] == rank, 1:]) for rank in sorted(ranks))


def _course(path: CriticalPath, rank: int, mine: npt.NDArray[np.int64]) -> RankCourse:
    length_ns = mine[:, 1] - mine[:, 0]
    passed_ns = np.cumsum(np.stack((np.zeros_like(length_ns), length_ns), axis=1).reshape(-1))
    at_ns = np.concatenate(([0], mine.reshape(-1), [path.of_ns]))
    known_ns = np.concatenate(([0], passed_ns, passed_ns[-1:] if len(passed_ns) else [0]))
    moments_ns = np.linspace(0, path.of_ns, POINTS + 1)
    return RankCourse(rank, path.by_rank[rank], len(mine), np.interp(moments_ns, at_ns, known_ns))


def within(course: RankCourse, of_ns: int, cells: int) -> Floats:
    """The share of the path's time in each of ``cells`` equal parts of it that is on the rank, from 0 to 1."""
    passed_ns = np.interp(np.linspace(0, POINTS, cells + 1), np.arange(POINTS + 1), course.passed_ns)
    found: Floats = np.diff(passed_ns) / (of_ns / cells)
    return found
