"""Ranks that end no step any more while others of the same run go on: they share no collective, or none just then."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from meshscope.run import Run
from meshscope.units import NS_PER_S

PATIENCE_NS = 10 * NS_PER_S
PATIENCE_STEPS = 20
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
    last_ns = _last_ns(run)
    if len(last_ns) < 2 or run.ended is not None:
        return None
    now_ns = run.last_entry_ns if run.is_lost else run.now_ns
    patience_ns = _patience_ns(run)
    still = {rank: now_ns - at_ns for rank, at_ns in last_ns.items() if now_ns - at_ns >= patience_ns}
    moving = tuple(rank for rank in last_ns if rank not in still)
    return LeftBehind(tuple(still), moving, min(still.values())) if still and moving else None


def _patience_ns(run: Run) -> float:
    """Ten seconds, and at least twenty usual steps."""
    lengths_ns: list[int] = (run.steps.end_ns - run.steps.start_ns).tolist()
    return max(PATIENCE_NS, PATIENCE_STEPS * statistics.median(lengths_ns))


def _last_ns(run: Run) -> dict[int, int]:
    """When each rank that trains ended its last step, by rank."""
    phase = {one.rank: one for one in run.phases if one.rank >= 0}
    over = {one.rank for one in run.rank_ends}
    last: dict[int, int] = {}
    for rank, end_ns in zip(run.steps.rank.tolist(), run.steps.end_ns.tolist(), strict=True):
        said = phase.get(rank)
        if rank not in over and said is not None and said.phase in TRAINING:
            last[rank] = max(end_ns, said.t_ns, last.get(rank, 0))
    return dict(sorted(last.items()))
