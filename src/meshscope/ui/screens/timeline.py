"""The timeline of a run: lanes of all ranks under one axis, a cursor, and what is under it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.strip import Strip

from meshscope.analysis.findings import Finding
from meshscope.analysis.lanes import Lane, Lanes
from meshscope.analysis.waiting import Waiting
from meshscope.errors import InputError
from meshscope.recording import bookmarks
from meshscope.run import Run
from meshscope.ui.canvas import Canvas
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, cells, ends, named, strip
from meshscope.ui.screens.dialog import Dialog
from meshscope.ui.timeline import drawing, going, placing, state
from meshscope.ui.timeline.details import details, times
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import whole
from meshscope.units import printable

_DETAIL_LINES = 6
_ABOVE, _BELOW = 3, _DETAIL_LINES + 1
_FOOT = (
    ("←→", "move"), ("+ −", "zoom"), ("n", "collective"), ("x", "exposed"), ("s", "step"), ("/", "search"),
    ("m", "mark"), ("?", "help"), ("esc", "back"),
)  # fmt: skip

KEYS = (
    ("← →  h l", "move the cursor; with shift, half a screen"),
    ("↑ ↓  j k", "choose a lane"),
    ("+  −", "zoom in and out around the cursor"),
    ("0  z", "show all; show the chosen span"),
    ("w  b", "next span of the lane, the one before"),
    ("n  N", "next collective, the one before"),
    ("x  X", "next exposed communication, the one before"),
    ("s  S", "next step, the one before"),
    ("K", "the longest span of the lane on the screen"),
    ("f", "from work to its launch, from a launch to its work"),
    ("o  O", "the same collective on the next rank, the one before"),
    ("/  ]  [", "search names; next match, the one before"),
    ("m  M", "mark a time, and a second; take the marks away"),
    ("B  '", "set or take away a bookmark; go to the next one"),
    ("r", "show some ranks: 0,4-7"),
    ("y", "copy what is said of the chosen span"),
    ("v  c", "sort the ranks; one lane for each rank"),
    ("esc  q", "back"),
)


class Timeline(Screen[None]):
    """Draws a state; keys make another one of it."""

    DEFAULT_CSS = "Timeline { overflow: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(keys, f"go('{where}')", show=False) for keys, where in (
            ("left,h", "left"), ("right,l", "right"), ("shift+left,H", "far left"), ("shift+right,L", "far right"),
            ("up,k", "up"), ("down,j", "down"), ("pageup", "page up"), ("pagedown", "page down"),
            ("plus,equals_sign,i", "in"), ("minus,underscore", "out"), ("0,home", "all"), ("z", "span"),
            ("w", "next span"), ("b", "previous span"), ("n", "next collective"), ("N", "previous collective"),
            ("x", "next exposed"), ("X", "previous exposed"), ("s", "next step"), ("S", "previous step"),
            ("K", "longest"), ("f", "follow"), ("o", "next rank"), ("O", "previous rank"),
            ("right_square_bracket", "next match"), ("left_square_bracket", "previous match"),
            ("m", "mark"), ("M", "no marks"), ("B", "bookmark"), ("apostrophe", "next bookmark"),
            ("v", "sort"), ("c", "collapse"),
        )),
        Binding("y", "copy", show=False),
        Binding("slash", "type('search')", show=False),
        Binding("r", "type('ranks')", show=False),
        Binding("question_mark", "help", show=False),
        Binding("escape,q,t", "leave", show=False),
    ]  # fmt: skip

    def __init__(self, lanes: Lanes, waits: Waiting, run: Run, look: Look, *, finding: Finding | None = None) -> None:
        super().__init__()
        self._finding = finding
        self._lanes, self._waits, self._run, self._look = lanes, waits, run, look
        self.state: State | None = None
        self._typing: tuple[str, str] | None = None
        self._said = ""

    def compose(self) -> ComposeResult:
        yield Canvas(id="timeline")

    # Drawing

    def on_resize(self) -> None:
        columns = drawing.place(self.size.width).columns
        if self.state is None:
            view = whole(self._lanes.start_ns, self._lanes.end_ns, columns)
            begun = replace(state.begun(self._lanes, view), bookmarks=self._bookmarks())
            self.state = self._begun_at(begun)
        else:
            self.state = replace(self.state, view=self.state.view.sized(columns))
        self._show()

    def _begun_at(self, begun: State) -> State:
        """Where the finding shows that was chosen, if one was."""
        if self._finding is None:
            return begun
        there = placing.placed(self._lanes, begun, self._finding)
        self._said = f"{self._finding.title}: " + (
            "no stretch of time shows it." if there is None else "where it is longest."
        )
        return there or begun

    def _show(self) -> None:
        width, height = self.size
        if self.state is None or not width or not height:
            return
        canvas = self.query_one(Canvas)
        canvas.styles.width, canvas.styles.height = width, height
        canvas.paint(self.frame(width, height))

    def frame(self, width: int, height: int) -> list[Strip]:
        """The whole screen for the state at hand."""
        assert self.state is not None
        placed = drawing.place(width)
        room = max(height - _ABOVE - _BELOW - 1, 1)
        self.state = self._scrolled(room)
        lines = [strip(line, width, self._look) for line in self._above(placed, width)]
        lines += self._lane_strips(placed, width, room)
        lines += [strip(line, width, self._look) for line in self._below()]
        blank = strip((), width, self._look)
        above = (lines + [blank] * height)[: height - 1]
        return [*above, strip(self._foot(width), width, self._look)]

    def _above(self, placed: drawing.Place, width: int) -> list[Line]:
        assert self.state is not None
        left, right = drawing.heading(self._lanes, self.state, printable(self._run.name), width)
        return [ends(left, right, width), *drawing.axis(self._lanes, self.state, placed)]

    def _scrolled(self, room: int) -> State:
        """The top moved so that the cursor's lane is on the screen."""
        assert self.state is not None
        rows = state.visible(self._lanes, self.state)
        at = rows.index(state.current(self._lanes, self.state))
        top = min(max(self.state.top, at - room + 1), at, max(len(rows) - room, 0))
        return replace(self.state, top=top)

    def _lane_strips(self, placed: drawing.Place, width: int, room: int) -> list[Strip]:
        assert self.state is not None
        rows = state.visible(self._lanes, self.state)
        here = going.chosen(self._lanes, self.state)
        span = times(self._lanes, *here) if here is not None else None
        lane = state.current(self._lanes, self.state)
        now = replace(self.state, rank=lane.rank, role=lane.role)
        blank = strip((), width, self._look)
        drawn: list[Strip] = []
        for row in self._rows(rows, room):
            if row is None:
                drawn.append(blank)
                continue
            chosen = span if row is lane else None
            drawn.append(drawing.lane_strip(self._lanes, row, now, placed, self._look, span=chosen))
        drawn += [blank] * (room - len(drawn))
        if len(drawn) > len(rows) + len(now.shown):
            drawn[-1] = strip(drawing.legend(rows, placed, self._look), width, self._look)
        return drawn

    def _rows(self, rows: list[Lane], room: int) -> list[Lane | None]:
        """The lanes that are on the screen; with a blank line between ranks where there is room for all."""
        assert self.state is not None
        between = len(self.state.shown) - 1
        if self.state.is_collapsed or len(rows) + between > room:
            return list(rows[self.state.top : self.state.top + room])
        aired: list[Lane | None] = []
        for row in rows:
            if aired and aired[-1] is not None and aired[-1].rank != row.rank:
                aired.append(None)
            aired.append(row)
        return aired

    def _below(self) -> list[Line]:
        assert self.state is not None
        found = details(self._lanes, self.state, self._waits)
        if self._said:
            found = [*found[: _DETAIL_LINES - 1], [(f" {self._said}", "warn")]]
        return [*found, *[[]] * (_DETAIL_LINES + 1 - len(found))]

    def _foot(self, width: int) -> list[Piece]:
        if self._typing is not None:
            what, text = self._typing
            caret = "_" if self._look.is_ascii else "█"
            typed: list[Piece] = [(f" {what}: ", "key"), (printable(text), "strong"), (caret, "accent")]
            return [*typed, ("   enter takes it, esc leaves it", "quiet")]
        pairs = [[(named(key, self._look), "key"), (f" {what}  ", "quiet")] for key, what in _FOOT]
        while len(pairs) > 1 and 1 + sum(map(cells, pairs)) > width:
            del pairs[-3 if len(pairs) > 3 else 0]  # help and the way back stay
        return [(" ", "text"), *(piece for pair in pairs for piece in pair)]

    # Keys

    def action_go(self, where: str) -> None:
        if self.state is None:
            return
        self._said = ""
        there = _GO[where](self._lanes, self.state)
        if there is None:
            self._said = (
                f"There is no {where} from here." if where != "follow" else "The trace does not link this span."
            )
        else:
            self.state = there
            if where == "bookmark":
                self._keep(there.bookmarks)
        self._show()

    def action_type(self, what: str) -> None:
        self._typing = (what, "")
        self._show()

    def on_key(self, event: events.Key) -> None:
        if self._typing is None:
            return
        event.stop()
        event.prevent_default()
        what, text = self._typing
        if event.key == "escape":
            self._typing = None
        elif event.key == "enter":
            self._typing = None
            self._take(what, text)
        elif event.key == "backspace":
            self._typing = (what, text[:-1])
        elif event.is_printable and event.character:
            self._typing = (what, text + event.character)
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed, keys are letters."""
        del action, parameters
        return self._typing is None

    def _take(self, what: str, text: str) -> None:
        assert self.state is not None
        self._said = ""
        try:
            if what == "ranks":
                self.state = state.filtered(self._lanes, self.state, text)
            else:
                self._look_for(text)
        except InputError as error:
            self._said = f"{error.message} {error.hint}"

    def _look_for(self, text: str) -> None:
        assert self.state is not None
        self.state = replace(self.state, search=going.search(self._lanes, text))
        if self.state.search is None:
            return
        there = going.next_match(self._lanes, self.state, 1) or going.next_match(self._lanes, self.state, -1)
        if there is None:
            self._said = f"No name on these lanes holds “{printable(text)}”."
        self.state = there or self.state

    def action_copy(self) -> None:
        """What is said of the chosen span, to the clipboard of the terminal (OSC 52)."""
        assert self.state is not None
        lines = details(self._lanes, self.state, self._waits)
        self.app.copy_to_clipboard("\n".join("".join(text for text, _ in line).strip(" ▲") for line in lines))
        self._said = "Copied what is said below."
        self._show()

    def action_help(self) -> None:
        lines: list[Line] = [[(f"{named(key, self._look):<12}", "key"), (what, "text")] for key, what in KEYS]
        self.app.push_screen(Dialog("timeline", lines, self._look))

    def action_leave(self) -> None:
        self.dismiss(None)

    # Bookmarks, which are kept beside a recording; traces have no folder of ours

    @property
    def _folder(self) -> Path | None:
        return Path(self._run.path) if self._run.experiment.strategy and Path(self._run.path).is_dir() else None

    def _bookmarks(self) -> tuple[int, ...]:
        return bookmarks.bookmarks(self._folder) if self._folder is not None else ()

    def _keep(self, times_ns: tuple[int, ...]) -> None:
        if self._folder is None or not bookmarks.keep(self._folder, times_ns):
            self._said = "The bookmark lasts until you leave: there is no folder of this recording to keep it in."

    # The mouse

    def on_click(self, event: events.Click) -> None:
        if self.state is None:
            return
        placed = drawing.place(self.size.width)
        room = max(self.size.height - _ABOVE - _BELOW - 1, 1)
        rows = self._rows(state.visible(self._lanes, self.state), room)
        at, column = event.y - _ABOVE, event.x - placed.gutter
        lane = rows[at] if 0 <= at < len(rows) else None
        if lane is not None:
            self.state = replace(self.state, rank=lane.rank, role=lane.role, pinned=None)
            if 0 <= column < placed.columns:
                self.state = replace(self.state, at_ns=self.state.view.edge(column))
            self._show()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event.x, 0.8)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event.x, 1.25)

    def _wheel(self, x: int, factor: float) -> None:
        if self.state is None:
            return
        column = min(max(x - drawing.place(self.size.width).gutter, 0), self.state.view.columns - 1)
        self.state = replace(self.state, view=self.state.view.zoomed(factor, self.state.view.edge(column)))
        self._show()


def _span_shown(lanes: Lanes, now: State) -> State | None:
    here = going.chosen(lanes, now)
    if here is None:
        return None
    start_ns, end_ns = times(lanes, *here)
    edge = max((end_ns - start_ns) // 4, 1)
    return replace(now, view=now.view.showing(start_ns - edge, end_ns + edge), at_ns=start_ns, pinned=here)


def _bookmarked(lanes: Lanes, now: State) -> State:
    del lanes
    kept = set(now.bookmarks) ^ {now.at_ns}
    return replace(now, bookmarks=tuple(sorted(kept)))


def _next_bookmark(lanes: Lanes, now: State) -> State | None:
    del lanes
    if not now.bookmarks:
        return None
    return state.gone(now, next((at for at in now.bookmarks if at > now.at_ns), now.bookmarks[0]))


def _resorted(lanes: Lanes, now: State) -> State:
    sorts = state.SORTS
    return state.sorted_by(lanes, now, sorts[(sorts.index(now.sort) + 1) % len(sorts)])


def _all(lanes: Lanes, now: State) -> State:
    return replace(now, view=now.view.showing(lanes.start_ns, lanes.end_ns))


_GO: dict[str, Callable[[Lanes, State], State | None]] = {
    "left": lambda _, now: state.time_moved(now, -1),
    "right": lambda _, now: state.time_moved(now, 1),
    "far left": lambda _, now: state.panned(now, -0.5),
    "far right": lambda _, now: state.panned(now, 0.5),
    "up": lambda lanes, now: state.lane_moved(lanes, now, -1),
    "down": lambda lanes, now: state.lane_moved(lanes, now, 1),
    "page up": lambda lanes, now: state.lane_moved(lanes, now, -10),
    "page down": lambda lanes, now: state.lane_moved(lanes, now, 10),
    "in": lambda _, now: state.zoomed(now, 0.5),
    "out": lambda _, now: state.zoomed(now, 2.0),
    "all": _all,
    "span": _span_shown,
    "next span": lambda lanes, now: going.next_span(lanes, now, 1),
    "previous span": lambda lanes, now: going.next_span(lanes, now, -1),
    "next collective": lambda lanes, now: going.next_collective(lanes, now, 1),
    "previous collective": lambda lanes, now: going.next_collective(lanes, now, -1),
    "next exposed": lambda lanes, now: going.next_exposed(lanes, now, 1),
    "previous exposed": lambda lanes, now: going.next_exposed(lanes, now, -1),
    "next step": lambda lanes, now: going.next_step(lanes, now, 1),
    "previous step": lambda lanes, now: going.next_step(lanes, now, -1),
    "longest": going.longest,
    "follow": going.followed,
    "next rank": lambda lanes, now: going.across(lanes, now, 1),
    "previous rank": lambda lanes, now: going.across(lanes, now, -1),
    "next match": lambda lanes, now: going.next_match(lanes, now, 1),
    "previous match": lambda lanes, now: going.next_match(lanes, now, -1),
    "mark": lambda _, now: state.marked(now),
    "no marks": lambda _, now: replace(now, marks=()),
    "bookmark": _bookmarked,
    "next bookmark": _next_bookmark,
    "sort": _resorted,
    "collapse": lambda _, now: replace(now, is_collapsed=not now.is_collapsed, pinned=None),
}
