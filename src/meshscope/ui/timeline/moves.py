"""What keys do to the state of a timeline, each by the name of where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from meshscope.analysis.lanes import Lanes
from meshscope.ui.timeline import going, listing, ranking, state
from meshscope.ui.timeline.state import State

Move = Callable[[Lanes, State], State | None]


def span_shown(lanes: Lanes, now: State) -> State | None:
    """The chosen span over two thirds of the screen."""
    here = going.chosen(lanes, now)
    if here is None:
        return None
    start_ns, end_ns = lanes.times(*here)
    edge = max((end_ns - start_ns) // 4, 1)
    return replace(now, view=now.view.showing(start_ns - edge, end_ns + edge), at_ns=start_ns, pinned=here)


def _all(lanes: Lanes, now: State) -> State:
    return replace(now, view=now.view.showing(lanes.start_ns, lanes.end_ns))


def _first(lanes: Lanes, now: State) -> State:
    return state.gone(now, lanes.start_ns)


def _newest(lanes: Lanes, now: State) -> State:
    """The last step that was profiled; the very end where there is none."""
    steps = lanes.steps
    return state.gone(now, int(steps.start_ns[-1]) if len(steps.number) else lanes.end_ns - 1)


MOVES: dict[str, Move] = {
    "left": lambda _, now: state.time_moved(now, -1),
    "right": lambda _, now: state.time_moved(now, 1),
    "far left": lambda _, now: state.panned(now, -0.5),
    "far right": lambda _, now: state.panned(now, 0.5),
    "up": lambda lanes, now: listing.lane_moved(lanes, now, -1),
    "down": lambda lanes, now: listing.lane_moved(lanes, now, 1),
    "page up": lambda lanes, now: listing.lane_moved(lanes, now, -10),
    "page down": lambda lanes, now: listing.lane_moved(lanes, now, 10),
    "in": lambda _, now: state.zoomed(now, 0.5),
    "out": lambda _, now: state.zoomed(now, 2.0),
    "all": _all,
    "first": _first,
    "newest": _newest,
    "span": span_shown,
    "next span": lambda lanes, now: going.next_span(lanes, now, 1),
    "previous span": lambda lanes, now: going.next_span(lanes, now, -1),
    "next collective": lambda lanes, now: going.next_collective(lanes, now, 1),
    "previous collective": lambda lanes, now: going.next_collective(lanes, now, -1),
    "next exposed": lambda lanes, now: going.next_exposed(lanes, now, 1),
    "previous exposed": lambda lanes, now: going.next_exposed(lanes, now, -1),
    "next step": lambda lanes, now: going.next_step(lanes, now, 1),
    "previous step": lambda lanes, now: going.next_step(lanes, now, -1),
    "longest": lambda lanes, now: going.longest(lanes, now, 1),
    "longer": lambda lanes, now: going.longest(lanes, now, -1),
    "follow": going.followed,
    "next rank": lambda lanes, now: going.across(lanes, now, 1),
    "previous rank": lambda lanes, now: going.across(lanes, now, -1),
    "next match": lambda lanes, now: going.next_match(lanes, now, 1),
    "previous match": lambda lanes, now: going.next_match(lanes, now, -1),
    "mark": lambda _, now: state.marked(now),
    "no marks": lambda _, now: replace(now, marks=()),
    "bookmark": lambda _, now: state.bookmarked(now),
    "next bookmark": lambda _, now: state.next_bookmark(now),
    "sort": ranking.resorted,
    "sort again": lambda lanes, now: ranking.sorted_by(lanes, now, now.sort),
    "fold": listing.rank_toggled,
    "fold all": listing.all_toggled,
    "open": listing.toggled,
    "back": lambda _, now: state.returned(now),
}

NOTHING = {
    "span": "Nothing is under the cursor.",
    "next span": "No span of this lane begins later.",
    "previous span": "No span of this lane begins earlier.",
    "next collective": "This rank has no collective later.",
    "previous collective": "This rank has no collective earlier.",
    "next exposed": "No communication of this rank is exposed later.",
    "previous exposed": "No communication of this rank is exposed earlier.",
    "next step": "No step that was profiled begins later.",
    "previous step": "No step that was profiled begins earlier.",
    "longest": "No span of this lane that begins on the screen is shorter.",
    "longer": "No span of this lane that begins on the screen is longer.",
    "follow": "The trace links this span to no launch and to no work.",
    "next rank": "No other rank that is shown has this collective.",
    "previous rank": "No other rank that is shown has this collective.",
    "next match": "No match later. / searches for a name.",
    "previous match": "No match earlier. / searches for a name.",
    "next bookmark": "There is no bookmark yet: B sets one.",
    "back": "There is no place to go back to.",
}
"""What is said where a key finds nowhere to go."""


def nothing(where: str, lanes: Lanes, now: State) -> str:
    """What is said where a key finds nowhere to go from here."""
    if where in ("next rank", "previous rank"):
        if len(now.shown) < 2:
            return "No other rank is shown."
        here = going.chosen(lanes, now)
        if here is None:
            return NOTHING["span"]
        if not going.is_collective(lanes, now):
            return "This is no collective: o and O go to the same collective on another rank."
    return NOTHING.get(where, "")


STEPWISE = frozenset({
    "left", "right", "up", "down", "page up", "page down", "mark", "no marks", "bookmark", "sort", "sort again", "fold",
    "fold all", "open", "back",
})  # fmt: skip
"""What leaves no place behind that one would want to come back to."""

GRADUAL = frozenset({"in", "out", "far left", "far right"})
"""What people do several times in a row: the way back leads before the first of them."""
