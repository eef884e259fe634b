"""Ranks that end no step any more while others of the same run go on: they share no collective, or none just then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshscope.analysis.parts import per_table
from meshscope.recording.standstill import PATIENCE_NS, patience_ns
from meshscope.run import Run
from meshscope.samples import StepTable

TRAINING = ("training", "profiling", "warming profiler")


@dataclass(frozen=True)
class LeftBehind:
    """``still`` ended no step for ``still_ns`` (the shortest of theirs), which ``moving`` did meanwhile."""

    still: tuple[int, ...]
    moving: tuple[int, ...]
    still_ns: int


def left_behind(run: Run) -> LeftBehind | None:
    """None where all that train still step, or none does; ranks that ended, or say that they do other than train, are
    neither."""
    if run.ended is not None:
        return None
    last_ns = _last_ns(run)
    now_ns = run.last_entry_ns if run.is_lost else run.now_ns
    if len(last_ns) < 2 or now_ns - min(last_ns.values()) < PATIENCE_NS:
        return None
    least_ns = patience_of(run)
    still = {rank: now_ns - at_ns for rank, at_ns in last_ns.items() if now_ns - at_ns >= least_ns}
    moving = tuple(rank for rank in last_ns if rank not in still)
    return LeftBehind(tuple(still), moving, min(still.values())) if still and moving else None


def patience_of(run: Run) -> float:
    """How long without a step is told, after the median of all that have ended; there must be one."""
    length_ns = run.steps.end_ns - run.steps.start_ns
    middle = len(length_ns) // 2
    return patience_ns(float(np.partition(length_ns, middle)[middle]))


def _last_ns(run: Run) -> dict[int, int]:
    """When each rank that trains ended its last step, by rank."""
    phase = {one.rank: one for one in run.phases if one.rank >= 0}
    over = {one.rank for one in run.rank_ends}
    ends_ns = _ends_ns(run.steps)
    return {
        rank: max(ends_ns[rank], said.t_ns)
        for rank, said in sorted(phase.items())
        if rank in ends_ns and rank not in over and said.phase in TRAINING
    }


@per_table
def _ends_ns(steps: StepTable) -> dict[int, int]:
    """The latest end of a step of each rank that told one."""
    if not len(steps.rank):
        return {}
    last_ns = np.full(int(steps.rank.max()) + 1, -1, dtype=np.int64)
    np.maximum.at(last_ns, steps.rank, steps.end_ns)
    return {rank: at_ns for rank, at_ns in enumerate(last_ns.tolist()) if at_ns >= 0}
