"""The lanes that are listed, line by line: of each rank all of them, or one, and below a lane those of its queues."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from meshscope.analysis.lane_rows import Lane
from meshscope.analysis.lane_streams import streams
from meshscope.analysis.lanes import Lanes
from meshscope.ui.timeline.state import State

Key = tuple[tuple[int, ...], frozenset[int], frozenset[tuple[int, str]]]


@dataclass(frozen=True, eq=False)
class Listed:
    """``lanes`` in their order on the screen, and ``places``: the line of each (rank, role, branch)."""

    lanes: tuple[Lane, ...]
    places: dict[tuple[int, str, str], int]

    def line(self, state: State) -> int:
        """The line of the cursor: of its lane, or of what that is folded into."""
        for role, branch in ((state.role, state.branch), (state.role, "")):
            if (state.rank, role, branch) in self.places:
                return self.places[state.rank, role, branch]
        return next((at for at, lane in enumerate(self.lanes) if lane.rank == state.rank), 0)


_newest: WeakKeyDictionary[Lanes, tuple[Key, Listed]] = WeakKeyDictionary()


def listed(lanes: Lanes, state: State) -> Listed:
    """Kept until other ranks or lanes are shown: a thousand ranks are listed once, not for every frame."""
    key = (state.shown, state.folded, state.opened)
    kept = _newest.get(lanes)
    if kept is None or kept[0] != key:
        kept = _newest[lanes] = (key, _listed(lanes, state))
    return kept[1]


def _listed(lanes: Lanes, state: State) -> Listed:
    found: list[Lane] = []
    for rank in state.shown:
        if rank in state.folded:
            found.append(lanes.folded[rank])
            continue
        for lane in lanes.by_rank[rank]:
            found.append(lane)
            if (rank, lane.role) in state.opened:
                found += streams(lanes, lane)
    return Listed(tuple(found), {(lane.rank, lane.role, lane.branch): at for at, lane in enumerate(found)})


def visible(lanes: Lanes, state: State) -> tuple[Lane, ...]:
    return listed(lanes, state).lanes


def current(lanes: Lanes, state: State) -> Lane:
    """The lane of the cursor."""
    found = listed(lanes, state)
    return found.lanes[found.line(state)]


def lane_moved(lanes: Lanes, state: State, by: int) -> State:
    """The cursor so many lines further down."""
    found = listed(lanes, state)
    return on(state, found.lanes[min(max(found.line(state) + by, 0), len(found.lanes) - 1)])


def on(state: State, lane: Lane) -> State:
    """The cursor on a lane, on no span in particular."""
    return replace(state, rank=lane.rank, role=lane.role, branch=lane.branch, pinned=None)


def unfolded(lanes: Lanes, state: State, rank: int, role: str) -> State:
    """The rank with its lanes, the cursor on that of the role."""
    lane = lanes.lane(rank, role)
    unfolded = replace(state, folded=state.folded - {rank})
    return on(unfolded, lane) if lane is not None else unfolded


def to_open(lanes: Lanes, state: State) -> Lane | None:
    """The lane whose queues would be shown by :func:`toggled`; None where that shows none."""
    lane = current(lanes, state)
    is_closed = state.rank not in state.folded and not lane.branch and (lane.rank, lane.role) not in state.opened
    return lane if is_closed else None


def toggled(lanes: Lanes, state: State) -> State:
    """What is under the cursor by its parts, or no longer: a folded rank by its lanes, a lane by its queues."""
    lane = current(lanes, state)
    if lane.rank in state.folded:
        return unfolded(lanes, state, lane.rank, state.role)
    return replace(state, opened=state.opened ^ {(lane.rank, lane.role)}, branch="", pinned=None)


def rank_toggled(lanes: Lanes, state: State) -> State:
    """The rank of the cursor as one line, or by its lanes again."""
    rank = current(lanes, state).rank
    return replace(state, folded=state.folded ^ {rank}, pinned=None)


def all_toggled(lanes: Lanes, state: State) -> State:
    """All ranks as one line each; by their lanes where they are that already."""
    every = frozenset(lanes.ranks)
    return replace(state, folded=frozenset() if every <= state.folded else every, pinned=None)
