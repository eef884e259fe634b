"""A whole screen of the timeline as strips: what stands around the lanes, the lanes, and what is said below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from rich.segment import Segment
from textual.strip import Strip

from meshscope.analysis.lane_rows import Lane
from meshscope.analysis.lanes import ALL, Lanes
from meshscope.analysis.waiting import Waiting
from meshscope.ui.look import USUAL, Look
from meshscope.ui.marks.cells import Line, Piece, strip
from meshscope.ui.palette import styles
from meshscope.ui.timeline import drawing
from meshscope.ui.timeline.codes import BLANK, CURSOR, MATCH, PICKED, UNSEEN, Codes, codes, mark_unseen, segments
from meshscope.ui.timeline.details import MOST_LINES, details
from meshscope.ui.timeline.folding import folded
from meshscope.ui.timeline.going import chosen
from meshscope.ui.timeline.listing import listed, visible
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import Viewport

ABOVE = 3
_LEGEND_FROM, _AIR_FROM = 14, 18


@dataclass(frozen=True, eq=False)
class Subject:
    """What is looked at: ``lanes`` of a run called ``name``, with the ``waits`` of its collectives.

    ``badge`` says how the clock of a recording stands, where that is not at its end.
    """

    lanes: Lanes
    waits: Waiting
    name: str
    badge: Piece | None = None


@dataclass(frozen=True)
class Extent:
    """How a screen of ``width`` × ``height`` cells is shared out: lines for lanes, and for what is said below."""

    width: int
    height: int

    @property
    def placed(self) -> drawing.Place:
        return drawing.place(self.width)

    @property
    def said(self) -> int:
        return min(max((self.height - 4) // 3, 1), MOST_LINES)

    @property
    def has_legend(self) -> bool:
        return self.height >= _LEGEND_FROM

    @property
    def lanes(self) -> int:
        return max(self.height - ABOVE - self.has_legend - self.said - 1, 1)


def scrolled(lanes: Lanes, state: State, room: int) -> State:
    """The top moved so that the cursor's lane is on the screen."""
    found = listed(lanes, state)
    at = found.line(state)
    return replace(state, top=min(max(state.top, at - room + 1), at, max(len(found.lanes) - room, 0)))


def lines(lanes: Lanes, state: State, room: int) -> list[Lane | None]:
    """The lanes that are on the screen; with a blank line (None) between ranks where there is room for all."""
    rows = visible(lanes, state)
    if len(rows) + len(state.shown) - 1 > room:
        return list(rows[state.top : state.top + room])
    aired: list[Lane | None] = []
    for row in rows:
        if aired and row.role != ALL and aired[-1] is not None and aired[-1].rank != row.rank:
            aired.append(None)
        aired.append(row)
    return aired


def above(subject: Subject, state: State, extent: Extent, look: Look) -> list[Strip]:
    """A heading, and the axis; then the lanes and what their textures mean."""
    lanes, placed = subject.lanes, extent.placed
    head = drawing.heading(lanes, state, subject.name, subject.badge, extent.width)
    found = [strip(line, extent.width, look) for line in (head, *drawing.axis(lanes, state, placed))]
    shown = lines(lanes, state, extent.lanes)
    blank = strip((), extent.width, look)
    drawn = iter(_lane_strips(lanes, [lane for lane in shown if lane is not None], state, placed, look))
    found += [blank if lane is None else next(drawn) for lane in shown]
    found += [blank] * (extent.lanes - len(shown))
    if extent.has_legend:
        found.append(strip(_legend(lanes, state, extent, len(shown), look), extent.width, look))
    return found


def _legend(lanes: Lanes, state: State, extent: Extent, shown: int, look: Look) -> Line:
    rows = visible(lanes, state)
    more, on_screen = "", rows
    if len(rows) > extent.lanes:
        on_screen = rows[state.top : state.top + shown]
        more = f"lines {state.top + 1}–{state.top + len(on_screen)} of {len(rows)} "
    has_unseen = bool((_drawn[lanes][2] == UNSEEN).any())
    return drawing.legend(on_screen, more, extent.placed, look, has_unseen=has_unseen)


def below(
    subject: Subject, state: State, extent: Extent, look: Look, *, said: str = "", is_pointed: bool = False
) -> list[Strip]:
    """What there is to say of the span that is chosen (or under the mouse), and of the last key."""
    found = details(subject.lanes, state, subject.waits, is_pointed=is_pointed)
    found = folded(found, extent.width, extent.said - bool(said))
    if said:
        found = [*found, [(f" {said}", "warn")]]
    blank: Line = ()
    return [strip(line, extent.width, look) for line in [*found, *[blank] * extent.said][: extent.said]]


def frame(subject: Subject, state: State, extent: Extent, look: Look = USUAL) -> list[Strip]:
    """All but the keys at the foot."""
    return [*above(subject, state, extent, look), *below(subject, state, extent, look)]


def _lane_strips(
    lanes: Lanes, rows: Sequence[Lane], state: State, placed: drawing.Place, look: Look
) -> list[Strip]:  # fmt: skip
    here = listed(lanes, state)
    mine = here.lanes[here.line(state)]
    found = _codes(lanes, rows, state.view).copy()
    for at, lane in enumerate(rows):
        if state.search is not None:
            _show_matches(lane, state, found[at])
        if lane is mine:
            _show_cursor(lanes, state, found[at])
    end = Segment(" ", styles(look)["text"])
    names = drawing.names(lanes, rows, state, placed)
    heads = (drawing.head(name, placed, look, is_here=lane is mine) for name, lane in zip(names, rows, strict=True))
    width = placed.gutter + placed.columns + 1
    return [Strip([*head, *row, end], width) for head, row in zip(heads, segments(found, look), strict=True)]


_drawn: WeakKeyDictionary[Lanes, tuple[Viewport, tuple[Lane, ...], Codes]] = WeakKeyDictionary()


def _codes(lanes: Lanes, rows: Sequence[Lane], view: Viewport) -> Codes:
    """Those of the last frame where neither the stretch nor the lanes are others: most keys move the cursor alone."""
    kept = _drawn.get(lanes)
    if kept is None or kept[0] != view or kept[1] != tuple(rows):
        kept = _drawn[lanes] = (view, tuple(rows), codes(rows, view))
        mark_unseen(kept[2], rows, lanes.profiled, view)
    return kept[2]


def _show_cursor(lanes: Lanes, state: State, row: Codes) -> None:
    """The span that is chosen, and where nothing is, the column of the cursor."""
    here = chosen(lanes, state)
    if here is not None:
        start_ns, end_ns = lanes.times(*here)
        first, last = state.view.column(start_ns), state.view.column(max(end_ns - 1, start_ns))
        row[max(first, 0) : max(last + 1, 0)] += PICKED
    column = state.view.column(state.at_ns)
    if 0 <= column < state.view.columns and row[column] in (BLANK, UNSEEN):
        row[column] = CURSOR


def _show_matches(lane: Lane, state: State, row: Codes) -> None:
    """Marks columns in which a searched name begins."""
    assert state.search is not None
    begun = np.searchsorted(state.search.begun_ns(lane), state.view.edges)
    row[begun[1:] > begun[:-1]] = MATCH
