"""The first state of a timeline, and how a state goes on when there is more of the run to show."""

from __future__ import annotations

from dataclasses import replace

from meshscope.analysis.lanes import ALL, Lanes
from meshscope.errors import InputError
from meshscope.ui.timeline.ranking import EXPOSED, LATE, RANK, ordered, parse_ranks, score_ns, sorted_by
from meshscope.ui.timeline.searching import search
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import Viewport, whole

ALL_LANES_UP_TO = 16
"""More ranks than this begin as one line each, the worst of them first."""


def begun(lanes: Lanes, view: Viewport) -> State:
    """The first step that was profiled, or all there is."""
    ranks = lanes.ranks
    state = State(view, view.start_ns, ranks[0], lanes.lanes[0].role, ranks)
    if len(lanes.steps.number):
        start, end = int(lanes.steps.start_ns[0]), int(lanes.steps.end_ns[0])
        edge = (end - start) // 50
        state = replace(state, view=view.showing(start - edge, end + edge), at_ns=start)
    return _worst_first(lanes, state) if len(ranks) > ALL_LANES_UP_TO else state


def _worst_first(lanes: Lanes, state: State) -> State:
    state = replace(state, folded=frozenset(lanes.ranks), role=ALL)
    told = (sort for sort in (LATE, EXPOSED) if any(score_ns(lanes, state, sort, rank) for rank in lanes.ranks))
    state = sorted_by(lanes, state, next(told, RANK))
    return replace(state, rank=state.shown[0])


def carried(before: Lanes, lanes: Lanes, state: State) -> State:
    """The state over what is known of the run by now: the same stretch, cursor, marks and lanes.

    Ranks that are new come after those that are shown, where the filter lets them; by their number if all are.
    """
    ranks = _chosen(lanes, state.only)
    kept = tuple(rank for rank in state.shown if rank in ranks)
    new = tuple(rank for rank in ranks if rank not in state.shown)
    shown = ordered(lanes, state, RANK, (*kept, *new)) if state.sort == RANK else (*kept, *new)
    is_folded = len(lanes.ranks) > ALL_LANES_UP_TO or bool(state.folded >= frozenset(before.ranks))
    state = replace(
        state,
        view=_over(lanes, state.view),
        shown=shown,
        rank=state.rank if state.rank in shown else shown[0],
        folded=(state.folded & frozenset(lanes.ranks)) | (frozenset(lanes.ranks) - frozenset(before.ranks))
        if is_folded
        else state.folded & frozenset(lanes.ranks),
        pinned=_same_span(before, lanes, state.pinned),
        search=search(lanes, state.search.text) if state.search is not None else None,
    )
    trail = tuple(
        replace(spot, view=_over(lanes, spot.view), pinned=_same_span(before, lanes, spot.pinned))
        for spot in state.trail
        if spot.rank in lanes.by_rank
    )
    return replace(state, trail=trail)


def _chosen(lanes: Lanes, only: str) -> tuple[int, ...]:
    try:
        return parse_ranks(only, lanes.ranks) if only else lanes.ranks
    except InputError:  # none of them is there at this time
        return lanes.ranks


def _over(lanes: Lanes, view: Viewport) -> Viewport:
    """The same stretch within what there is now; it stays even where there is nothing yet, or no more."""
    whole_of = whole(lanes.start_ns, lanes.end_ns, view.columns)
    first, last = min(whole_of.first_ns, view.start_ns), max(whole_of.last_ns, view.stop_ns)
    return replace(view, first_ns=first, last_ns=last)


def _same_span(before: Lanes, lanes: Lanes, pinned: tuple[int, int] | None) -> tuple[int, int] | None:
    """What another numbering of windows calls a span; None where its window is not there."""
    if pinned is None:
        return None
    window = before.windows[pinned[0]]
    found = next((number for number, one in enumerate(lanes.windows) if one is window), None)
    return (found, pinned[1]) if found is not None else None
