"""Memory by category over time: every measurement of a recording, or the history of an allocator's own file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from meshscope.analysis.memory import RankMemory
from meshscope.records import MemoryRecord
from meshscope.run import Run

POINTS = 64


@dataclass(frozen=True)
class Moment:
    """``step`` is −1 where the source knows no steps. ``total_bytes`` is None where only categories were measured."""

    t_ns: int
    step: int
    total_bytes: int | None
    categories: dict[str, int]


def course(run: Run, rank: RankMemory, points: int = POINTS) -> tuple[Moment, ...]:
    """In time order, at most ``points``: of a history the fullest moment of each equal part of its time."""
    if rank.record is not None:
        return _recorded(rank.record, points)
    mine = [entry for entry in run.memory if entry.rank == rank.rank]
    kept = np.unique(np.linspace(0, len(mine) - 1, min(points, len(mine))).astype(np.int64)).tolist()
    return tuple(
        Moment(entry.t_ns, entry.step, entry.in_use_bytes if entry.in_use_bytes >= 0 else None, dict(entry.categories))
        for entry in (mine[at] for at in kept)
    )


def _recorded(record: MemoryRecord, points: int) -> tuple[Moment, ...]:
    traced = record.allocations
    if traced is None or not len(traced.time_ns):
        return ()
    # From the first one on: unix nanoseconds do not fit a float.
    since_ns = traced.time_ns - traced.time_ns[0]
    at = np.unique(np.searchsorted(since_ns, np.linspace(0, int(since_ns[-1]) + 1, points + 1)))
    fullest = [int(first + traced.total_bytes[first:end].argmax()) for first, end in pairwise(at.tolist())]
    return tuple(
        Moment(
            int(traced.time_ns[number]),
            -1,
            int(traced.total_bytes[number]),
            {name: int(values[number]) for name, values in record.category_bytes.items()},
        )
        for number in fullest
    )
