"""Where a key goes on the timeline: to the next of something, from a launch to its kernel, from rank to rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from meshscope.analysis.lanes import COLLECTIVES, Lane, Lanes
from meshscope.spans import SpanTable
from meshscope.ui.timeline.state import Search, State, current, gone, visible

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


def lane_of(lanes: Lanes, rank: int, role: str) -> Lane | None:
    return next((lane for lane in lanes.lanes if lane.rank == rank and lane.role == role), None)


def next_span(lanes: Lanes, state: State, by: int) -> State | None:
    """The next (or the one before) of the cursor's lane; None where there is none."""
    return _next_of(lanes, state, current(lanes, state), by, None)


def next_collective(lanes: Lanes, state: State, by: int) -> State | None:
    lane = lane_of(lanes, state.rank, COLLECTIVES)
    return _next_of(lanes, state, lane, by, None) if lane is not None else None


def next_match(lanes: Lanes, state: State, by: int) -> State | None:
    """The next span that the search means, on any lane that is shown."""
    search = state.search
    if search is None:
        return None
    found = []
    for lane in visible(lanes, state):
        there = _next_of(lanes, state, lane, by, lambda rows, lane=lane: matching(lanes, lane, search, rows))  # type: ignore[misc]
        if there is not None:
            found.append(there)
    return min(found, key=lambda there: by * there.at_ns, default=None)


def matching(lanes: Lanes, lane: Lane, search: Search, rows: Ints) -> Flags:
    """Which of some rows of a lane have a name, or are of a collective, that is searched for."""
    found = np.zeros(len(rows), dtype=np.bool_)
    window, row = lane.rows.window[rows], lane.rows.row[rows]
    for number in np.unique(window).tolist():
        here = window == number
        spans = lanes.windows[number].spans
        by_name = search.names[number][spans.name[row[here]]]
        found[here] = by_name | search.collectives[number][spans.collective[row[here]]]
    return found


def _next_of(lanes: Lanes, state: State, lane: Lane, by: int, keep: Callable[[Ints], Flags] | None) -> State | None:
    """From the cursor (or the span that is chosen on the lane) to the next that is kept, some at a time."""
    rows = lane.rows
    at = _place(lane, state) + by if lane.rank == state.rank and _place(lane, state) >= 0 else _beside(lane, state, by)
    size = 1 if keep is None else 4096
    while 0 <= at < len(rows):
        some = np.arange(at, min(at + size, len(rows))) if by > 0 else np.arange(at, max(at - size, -1), -1)
        kept = some if keep is None else some[keep(some)]
        if len(kept):
            return _at(state, lane, int(kept[0]))
        at = int(some[-1]) + by
    return None


def _beside(lane: Lane, state: State, by: int) -> int:
    """The first row that begins after the cursor, or the last that begins before it."""
    if by > 0:
        return int(np.searchsorted(lane.rows.start_ns, state.at_ns, side="right"))
    return int(np.searchsorted(lane.rows.start_ns, state.at_ns, side="left")) - 1


def _place(lane: Lane, state: State) -> int:
    """Where the chosen span is among the rows of a lane; −1 where it is not on it."""
    if state.pinned is None:
        return -1
    window, row = state.pinned
    return _row_of(lane, window, row)


def _row_of(lane: Lane, window: int, row: int) -> int:
    found = np.flatnonzero((lane.rows.row == row) & (lane.rows.window == window))
    return int(found[0]) if len(found) else -1


def _at(state: State, lane: Lane, at: int) -> State:
    rows = lane.rows
    there = replace(state, rank=lane.rank, role=lane.role)
    return gone(there, int(rows.start_ns[at]), window=int(rows.window[at]), row=int(rows.row[at]))


def next_exposed(lanes: Lanes, state: State, by: int) -> State | None:
    """The next stretch of a rank's communication that nothing hides."""
    found = lanes.exposed.get(state.rank)
    if found is None or not len(found):
        return None
    at = _next_time(found.start_ns, state.at_ns, by)
    return _on_collectives(lanes, gone(state, at)) if at is not None else None


def _on_collectives(lanes: Lanes, state: State) -> State:
    return replace(state, role=COLLECTIVES) if lane_of(lanes, state.rank, COLLECTIVES) else state


def next_step(lanes: Lanes, state: State, by: int) -> State | None:
    at = _next_time(lanes.steps.start_ns, state.at_ns, by)
    return gone(state, at) if at is not None else None


def _next_time(times_ns: Ints, at_ns: int, by: int) -> int | None:
    place = int(np.searchsorted(times_ns, at_ns, side="right" if by > 0 else "left")) - (0 if by > 0 else 1)
    return int(times_ns[place]) if 0 <= place < len(times_ns) else None


def longest(lanes: Lanes, state: State) -> State | None:
    """The longest span of the cursor's lane that begins on the screen."""
    lane = current(lanes, state)
    first, last = np.searchsorted(lane.rows.start_ns, [state.view.start_ns, state.view.stop_ns])
    if first == last:
        return None
    lengths = lane.rows.end_ns[first:last] - lane.rows.start_ns[first:last]
    return _at(state, lane, int(first + np.argmax(lengths)))


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


def across(lanes: Lanes, state: State, by: int) -> State | None:
    """The same collective on the next rank: of its name and group, the one that ends nearest by the common clock."""
    here = chosen(lanes, state)
    if here is None or current(lanes, state).role != COLLECTIVES:
        return None
    number, row = here
    mine = lanes.windows[number].spans
    ranks = [lane.rank for lane in visible(lanes, state) if lane_of(lanes, lane.rank, COLLECTIVES)]
    ranks = list(dict.fromkeys(ranks))
    rank = ranks[(ranks.index(state.rank) + by) % len(ranks)]
    lane = lane_of(lanes, rank, COLLECTIVES)
    if lane is None or rank == state.rank:
        return None
    end_ns = int(mine.end_ns[row]) - lanes.ahead_ns[number]
    alike = _alike(lanes, lane, mine, row)
    rows = np.flatnonzero(alike)
    if not len(rows):
        return None
    return _at(state, lane, int(rows[np.argmin(np.abs(lane.rows.end_ns[rows] - end_ns))]))


def _alike(lanes: Lanes, lane: Lane, mine: SpanTable, row: int) -> Flags:
    """Which rows of a lane are of the same collective and group."""
    alike = np.zeros(len(lane.rows), dtype=np.bool_)
    for number in np.unique(lane.rows.window).tolist():
        here = lane.rows.window == number
        spans, rows = lanes.windows[number].spans, lane.rows.row[here]
        same = spans.collective[rows] == _number(spans.collectives, mine.collectives, int(mine.collective[row]))
        alike[here] = same & (spans.group[rows] == _number(spans.groups, mine.groups, int(mine.group[row])))
    return alike


def _number(table: tuple[str, ...], mine: tuple[str, ...], number: int) -> int:
    """What another window's table calls an entry of mine; −1 for none, −2 where it has no such entry."""
    if number < 0:
        return -1
    return table.index(mine[number]) if mine[number] in table else -2


def _to(lanes: Lanes, state: State, window: int, row: int) -> State | None:
    """A span of a window, on whichever lane of its rank it is."""
    rank = lanes.windows[window].rank
    for lane in lanes.lanes:
        if lane.rank == rank and (at := _row_of(lane, window, row)) >= 0:
            return _at(replace(state, is_collapsed=False), lane, at)
    return None


def search(lanes: Lanes, text: str) -> Search | None:
    """Names that hold a text, whatever its case; None for no text."""
    wanted = text.strip().casefold()
    if not wanted:
        return None
    tables: dict[int, Flags] = {}

    def flags(names: tuple[str, ...]) -> Flags:
        if id(names) not in tables:
            # The last is for −1: what has no name is not meant.
            tables[id(names)] = np.array([*(wanted in name.casefold() for name in names), False], dtype=np.bool_)
        return tables[id(names)]

    spans = [window.spans for window in lanes.windows]
    names, collectives = (flags(one.names) for one in spans), (flags(one.collectives) for one in spans)
    return Search(text.strip(), tuple(names), tuple(collectives))
