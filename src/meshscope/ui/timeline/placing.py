"""Where on the timeline a finding shows most: its rank's longest stretch of what the finding is about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshscope.analysis.findings import Finding
from meshscope.analysis.lanes import COLLECTIVES, COMPUTE, HOST, Lanes
from meshscope.intervals import EMPTY, Intervals
from meshscope.ui.timeline.listing import unfolded
from meshscope.ui.timeline.state import State, gone

_EXPOSED = (
    "exposed-tail", "no-overlap", "small-collectives", "collectives-differ", "synchronous-collectives",
    "synced-accumulation", "root-resharded", "exposed-gathers", "slow-link",
)  # fmt: skip
_OTHERS_WAIT = ("straggler", "uneven-stages", "ragged-batch", "memory-imbalance")
_IDLE = ("host-bound", "launch-bound", "input-bound")
_AROUND = 4


def placed(lanes: Lanes, state: State, found: Finding) -> State | None:
    """The timeline at it; None for a finding that no stretch of time shows."""
    named = [rank for rank in found.ranks if rank in lanes.ranks]
    rank = named[0] if named else lanes.ranks[0]
    if found.code in _EXPOSED:
        return _at(lanes, state, rank, COLLECTIVES, lanes.exposed[rank].intervals)
    if found.code in _OTHERS_WAIT and named:
        # The late rank itself waits for nobody: what it costs shows on one that waits for it.
        other = next((one for one in lanes.ranks if one not in named), None)
        return _at(lanes, state, other, COLLECTIVES, _layer(lanes, other, "wait")) if other is not None else None
    if found.code in _IDLE:
        return _at(lanes, state, rank, COMPUTE, _idle(lanes, rank))
    return None


def _layer(lanes: Lanes, rank: int, meaning: str) -> Intervals:
    lane = lanes.lane(rank, COLLECTIVES)
    covered = dict(lane.layers).get(meaning) if lane is not None else None
    return covered.intervals if covered is not None else EMPTY


def _idle(lanes: Lanes, rank: int) -> Intervals:
    """What no lane of the device covers, within the windows of the rank."""
    windows = [
        (window.start_ns - ahead, window.end_ns - ahead)
        for window, ahead in zip(lanes.windows, lanes.ahead_ns, strict=True)
        if window.rank == rank
    ]
    edges = np.array(sorted(windows), dtype=np.int64).reshape(-1, 2)
    idle = Intervals(edges[:, 0], edges[:, 1])
    for lane in lanes.lanes:
        if lane.rank == rank and lane.role != HOST:
            for _, covered in lane.layers:
                idle -= covered.intervals
    return idle


def _at(lanes: Lanes, state: State, rank: int, role: str, where: Intervals) -> State | None:
    if not len(where) or lanes.lane(rank, role) is None:
        return None
    longest = int(np.argmax(where.end_ns - where.start_ns))
    start, end = int(where.start_ns[longest]), int(where.end_ns[longest])
    there = gone(unfolded(lanes, state, rank, role), start)
    return replace(there, view=state.view.showing(start - _AROUND * (end - start), end + _AROUND * (end - start)))
