"""Where a key goes on the timeline: to the next of something, from a launch to its kernel, from rank to rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from meshscope.analysis.lane_rows import Lane
from meshscope.analysis.lanes import ALL, COLLECTIVES, WAITS, Lanes
from meshscope.errors import InputError
from meshscope.spans import SpanTable
from meshscope.ui.timeline.listing import current, unfolded, visible
from meshscope.ui.timeline.searching import Search
from meshscope.ui.timeline.state import State, gone
from meshscope.units import ranges

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def chosen(lanes: Lanes, state: State) -> tuple[int, int] | None:
    """The span under the cursor as (window, row): at its time, else the longest in its column."""
    if state.pinned is not None:
        return state.pinned
    rows = current(lanes, state).rows
    at = rows.at(state.at_ns)
    if at < 0:
        column = state.view.column(state.at_ns)
        at = rows.between(state.view.edge(column), state.view.edge(column + 1))
    return (int(rows.window[at]), int(rows.row[at])) if at >= 0 else None


def next_span(lanes: Lanes, state: State, by: int) -> State | None:
    """The next (or the one before) of the cursor's lane; None where there is none."""
    return _next_of(lanes, state, current(lanes, state), by)


def next_collective(lanes: Lanes, state: State, by: int) -> State | None:
    lane = lanes.lane(state.rank, COLLECTIVES)
    return _next_of(lanes, state, lane, by) if lane is not None else None


def next_match(lanes: Lanes, state: State, by: int) -> State | None:
    """The next span that the search means on any lane that is listed: by its start, then by its lane."""
    search = state.search
    if search is None:
        return None
    rows, here = visible(lanes, state), current(lanes, state)
    line = next(at for at, lane in enumerate(rows) if lane is here)
    best: tuple[int, Lane, int] | None = None
    for at, lane in enumerate(rows):
        is_opened = lane.branch == "" and (lane.rank, lane.role) in state.opened  # its queues are listed below it
        if is_opened or not len(search.places(lane)):
            continue
        side = "" if at == line else "right" if at < line else "left"
        found = _beside_match(lane, search, state, by, side)
        if found >= 0:
            start = int(lane.rows.start_ns[found])
            if best is None or (start < best[0] if by > 0 else start >= best[0]):
                best = start, lane, found
    return _at(state, best[1], best[2]) if best is not None else None


def _beside_match(lane: Lane, search: Search, state: State, by: int, side: str) -> int:
    """The match after the cursor or before it; on the cursor's lane (no ``side``) after the span that is chosen."""
    places, mine = search.places(lane), _place(lane, state) if not side else -1
    if mine >= 0:
        at = int(np.searchsorted(places, mine, side="right" if by > 0 else "left"))
    else:
        begun = search.begun_ns(lane)
        strict = "right" if by > 0 else "left"
        at = int(np.searchsorted(begun, state.at_ns, side=side or strict))  # type: ignore[call-overload]
    at -= by < 0
    return int(places[at]) if 0 <= at < len(places) else -1


def _next_of(lanes: Lanes, state: State, lane: Lane, by: int) -> State | None:
    """From the cursor, or from the span that is chosen where it is on the lane."""
    del lanes
    mine = _place(lane, state) if lane.rank == state.rank else -1
    at = mine + by if mine >= 0 else _beside(lane, state, by)
    return _at(state, lane, at) if 0 <= at < len(lane.rows) else None


def _beside(lane: Lane, state: State, by: int) -> int:
    """The first row that begins after the cursor, or the last that begins before it."""
    if by > 0:
        return int(np.searchsorted(lane.rows.start_ns, state.at_ns, side="right"))
    return int(np.searchsorted(lane.rows.start_ns, state.at_ns, side="left")) - 1


def _place(lane: Lane, state: State) -> int:
    """Where the chosen span is among the rows of a lane, on which it begins at the cursor; −1 where it is not on it."""
    return lane.rows.place(*state.pinned, state.at_ns) if state.pinned is not None else -1


def _at(state: State, lane: Lane, at: int) -> State:
    rows = lane.rows
    there = replace(state, rank=lane.rank, role=lane.role, branch=lane.branch)
    return gone(there, int(rows.start_ns[at]), window=int(rows.window[at]), row=int(rows.row[at]))


def next_exposed(lanes: Lanes, state: State, by: int) -> State | None:
    """The next stretch of a rank's communication that nothing hides."""
    at = _next_time(lanes.exposed[state.rank].start_ns, state.at_ns, by)
    return replace(gone(state, at), role=COLLECTIVES, branch="") if at is not None else None


def next_step(lanes: Lanes, state: State, by: int) -> State | None:
    at = _next_time(lanes.steps.start_ns, state.at_ns, by)
    return gone(state, at) if at is not None else None


def _next_time(times_ns: Ints, at_ns: int, by: int) -> int | None:
    place = int(np.searchsorted(times_ns, at_ns, side="right" if by > 0 else "left")) - (0 if by > 0 else 1)
    return int(times_ns[place]) if 0 <= place < len(times_ns) else None


def _profiled(steps: Sequence[int]) -> str:
    """``steps 4–6 were``."""
    if not steps:
        return "no whole step was"
    return f"step {steps[0]} was" if len(steps) == 1 else f"steps {ranges(steps, 6)} were"


def to_step(lanes: Lanes, state: State, text: str) -> State:
    """The whole of a step by its number. Raises InputError for one that was not profiled."""
    steps = lanes.steps
    known = _profiled(steps.number.tolist())
    wanted = text.strip()
    if not wanted.isdecimal() or len(wanted) > 18:
        raise InputError(f"{wanted[:20]!r} is the number of no step.", hint=f"{known[0].upper()}{known[1:]} profiled.")
    found = np.flatnonzero(steps.number == int(wanted))
    if not len(found):
        raise InputError(f"Step {int(wanted)} was not profiled; {known}.")
    start, end = int(steps.start_ns[found[0]]), int(steps.end_ns[found[0]])
    edge = (end - start) // 50
    return replace(gone(state, start), view=state.view.showing(start - edge, end + edge))


def longest(lanes: Lanes, state: State, by: int) -> State | None:
    """The longest span of the cursor's lane that begins on the screen; from there the next longest."""
    lane = current(lanes, state)
    first, last = lane.rows.begun_in(state.view.start_ns, state.view.stop_ns)
    at = lane.rows.longest(first, last, after=_place(lane, state), by=by)
    return _at(state, lane, at) if at >= 0 else None


def followed(lanes: Lanes, state: State) -> State | None:
    """From work to the launch that asked for it, from a launch to the first work it asked for."""
    here = chosen(lanes, state)
    if here is None:
        return None
    number, row = here
    spans = lanes.windows[number].spans
    other = int(spans.link[row])
    if other < 0:
        asked = np.flatnonzero(spans.link == row)
        other = int(asked[np.argmin(spans.start_ns[asked])]) if len(asked) else -1
    return _to(lanes, state, number, other) if other >= 0 else None


def _to(lanes: Lanes, state: State, window: int, row: int) -> State | None:
    """A span of a window, on whichever lane of its rank it is."""
    start_ns, _ = lanes.times(window, row)
    for lane in lanes.by_rank.get(lanes.windows[window].rank, ()):
        at = lane.rows.place(window, row, start_ns)
        if at >= 0 and lane.role != WAITS:
            return _at(unfolded(lanes, state, lane.rank, lane.role), lane, at)
    return None


def is_collective(lanes: Lanes, state: State) -> bool:
    """Whether the chosen span is a collective, which other ranks may have a part in."""
    here = chosen(lanes, state)
    if here is None or current(lanes, state).role not in (COLLECTIVES, WAITS, ALL):
        return False
    number, row = here
    return bool(lanes.windows[number].spans.collective[row] >= 0)


def across(lanes: Lanes, state: State, by: int) -> State | None:
    """The same collective on the next rank that has it: of its kind and group, by its number or its time."""
    here = chosen(lanes, state)
    if here is None or current(lanes, state).role not in (COLLECTIVES, WAITS, ALL):
        return None
    ranks = list(state.shown)
    first = ranks.index(state.rank)
    for on in range(1, len(ranks)):
        lane = lanes.lane(ranks[(first + by * on) % len(ranks)], COLLECTIVES)
        at = _counterpart(lanes, lane, *here) if lane is not None else -1
        if lane is not None and at >= 0:
            return replace(_at(state, lane, at), role=COLLECTIVES, branch="")
    return None


def _counterpart(lanes: Lanes, lane: Lane, number: int, row: int) -> int:
    """Where on a lane of collectives the one is that a span of another rank is part of; −1 where it is not."""
    mine = lanes.windows[number].spans
    if mine.collective[row] < 0:
        return -1
    start_ns, end_ns = lanes.times(number, row)
    same = np.flatnonzero(_alike(lanes, lane, mine, row))
    # What ends at one time on all ranks overlaps there, as far as the clocks agree.
    apart_ns = lanes.residual_ns or 0
    starts, ends = lane.rows.start_ns[same], lane.rows.end_ns[same]
    same = same[(starts - apart_ns < end_ns) & (ends + apart_ns > start_ns)]
    return int(same[np.argmin(np.abs(lane.rows.end_ns[same] - end_ns))]) if len(same) else -1


def _alike(lanes: Lanes, lane: Lane, mine: SpanTable, row: int) -> Flags:
    """Which rows of a lane are of the same collective and group, and of the same number where both have one."""
    alike = np.zeros(len(lane.rows), dtype=np.bool_)
    sequence = int(mine.sequence[row])
    for number in np.unique(lane.rows.window).tolist():
        here = lane.rows.window == number
        spans, rows = lanes.windows[number].spans, lane.rows.row[here]
        same = spans.collective[rows] == _number(spans.collectives, mine.collectives, int(mine.collective[row]))
        same &= spans.group[rows] == _number(spans.groups, mine.groups, int(mine.group[row]))
        if sequence >= 0:
            same &= (spans.sequence[rows] == sequence) | (spans.sequence[rows] < 0)
        alike[here] = same
    return alike


def _number(table: tuple[str, ...], mine: tuple[str, ...], number: int) -> int:
    """What another window's table calls an entry of mine; −1 for none, −2 where it has no such entry."""
    if number < 0:
        return -1
    return table.index(mine[number]) if mine[number] in table else -2
