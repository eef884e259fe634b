"""The timeline of a run: lanes of all ranks under one axis, a cursor, and what is under it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, work
from textual.binding import Binding, BindingType

from meshscope.analysis.findings import Finding
from meshscope.analysis.lane_streams import is_known, streams
from meshscope.analysis.lanes import Lanes
from meshscope.errors import InputError
from meshscope.recording import bookmarks
from meshscope.ui.asking import in_thread
from meshscope.ui.commands import Command
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line
from meshscope.ui.screens.scrolled import Paragraphs, Scrolled
from meshscope.ui.screens.timeline_drawn import Kept
from meshscope.ui.screens.timeline_pointed import Pointed
from meshscope.ui.timeline import going, keys, listing, placing, ranking, telling
from meshscope.ui.timeline.details import details
from meshscope.ui.timeline.frame import Subject
from meshscope.ui.timeline.moves import GRADUAL, MOVES, NOTHING, STEPWISE, nothing
from meshscope.ui.timeline.searching import search
from meshscope.ui.timeline.state import State, departed
from meshscope.units import printable

if TYPE_CHECKING:
    from meshscope.ui.app import MeshscopeApp

_AT_ONCE = 500_000
"""So many spans are sorted or searched before anybody notices; with more it is said that it takes a moment."""

_PROMPTS = {"search": "a piece of a name", "step": "a number", "ranks": "like 0,4-7; empty for all"}


class Timeline(Pointed):
    """Draws a state; keys make another one of it. ``folder`` is where bookmarks are kept, None for nowhere."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+l", "redraw", show=False),
        *(Binding(names, action, show=False)
          for _, rows in keys.GROUPS for row in rows for names, action in row.bindings),
    ]  # fmt: skip

    def __init__(
        self,
        subject: Subject | None,
        look: Look,
        *,
        folder: Path | None = None,
        finding: Finding | None = None,
        kept: Kept | None = None,
    ) -> None:
        super().__init__(subject, look, kept)
        self._folder, self._finding = folder, finding
        self.typing: tuple[str, str] | None = None
        self._last = ""

    def begin(self, state: State) -> State:
        """Where the finding shows that was chosen, if one was."""
        if self._folder is not None:
            state = replace(state, bookmarks=bookmarks.bookmarks(self._folder))
        if self._finding is None or self.subject is None:
            return state
        there = placing.placed(self.subject.lanes, state, self._finding)
        where = "no stretch of time shows it." if there is None else "where it is longest."
        self.said = f"{printable(self._finding.title)}: {where}"
        return departed(state, there) if there is not None else state

    def foot(self, width: int) -> Line:
        if self.typing is None:
            return super().foot(width)
        what, text = self.typing
        caret = "_" if self.look.is_ascii else "█"
        typed: Line = [(f" {what}: ", "key"), (printable(text), "strong"), (caret, "accent")]
        return [*typed, (f"   {_PROMPTS[what]}; enter takes it, esc leaves it", "quiet")]

    def prepare(self, lanes: Lanes) -> None:
        """Work out the queues of lanes that are open, for lanes that are shown next; called beside the screen."""
        for rank, role in self.state.opened if self.state is not None else ():
            if (lane := lanes.lane(rank, role)) is not None:
                streams(lanes, lane)

    # Going

    def action_go(self, where: str) -> None:
        if self.state is None or self.subject is None:
            return
        self.said, self.pointed = "", None
        lanes, lane = self.subject.lanes, listing.to_open(self.subject.lanes, self.state) if where == "open" else None
        if lane is not None and not is_known(lane):
            self._soon(len(lane.rows), lambda: streams(lanes, lane), lambda: self._go(where))
        else:
            self._go(where)

    def _go(self, where: str) -> None:
        assert self.state is not None
        assert self.subject is not None
        there = MOVES[where](self.subject.lanes, self.state)
        if there is None:
            self.said = nothing(where, self.subject.lanes, self.state)
        else:
            is_going_on = where in GRADUAL and self._last in GRADUAL
            self.state = there if where in STEPWISE or is_going_on else departed(self.state, there)
            if where == "bookmark":
                self._keep(there.bookmarks)
        self._last = where
        self.show()

    def _soon(self, spans: int, ask: Callable[[], object], then: Callable[[], None]) -> None:
        """What costs a look at so many spans, and then what rests on it: beside the screen where they are many."""
        if spans <= _AT_ONCE:
            ask()
            then()
        else:
            self.said = "One moment…"
            self.show()
            self._later(ask, then)

    @work(exclusive=True, group="lanes")
    async def _later(self, ask: Callable[[], object], then: Callable[[], None]) -> None:
        await in_thread(ask)
        self.said = ""
        then()

    # What is typed

    def action_type(self, what: str) -> None:
        if self.state is not None:
            self.typing = (what, self.state.only if what == "ranks" else "")
            self.show()

    def on_key(self, event: events.Key) -> None:
        if self.typing is None:
            return
        event.stop()
        event.prevent_default()
        what, text = self.typing
        if event.key == "escape":
            self.typing = None
        elif event.key == "enter":
            self.typing = None
            self._take(what, text)
        elif event.key == "backspace":
            self.typing = (what, text[:-1])
        elif event.key == "ctrl+u":
            self.typing = (what, "")
        elif event.is_printable and event.character:
            self.typing = (what, text + event.character)
        self.show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed, keys are letters."""
        del action, parameters
        return self.typing is None

    def _take(self, what: str, text: str) -> None:
        if self.state is None or self.subject is None:
            return
        self.said = ""
        lanes = self.subject.lanes
        try:
            if what == "ranks":
                self.state = departed(self.state, ranking.filtered(lanes, self.state, text))
                missing = ranking.unknown(text, lanes.ranks)
                self.said = f"Not among the ranks of this run: {missing}." if missing else ""
            elif what == "step":
                self.state = departed(self.state, going.to_step(lanes, self.state, text))
            else:
                self._look_for(text)
        except InputError as error:
            self.said = f"{error.message} {error.hint}".rstrip()

    def _look_for(self, text: str) -> None:
        assert self.state is not None
        assert self.subject is not None
        found = search(self.subject.lanes, text)
        self.state = replace(self.state, search=found)
        if found is not None:
            spans = sum(len(window.spans) for window in self.subject.lanes.windows)
            listed = listing.visible(self.subject.lanes, self.state)
            self._soon(spans, lambda: (found.count, *map(found.places, listed)), lambda: self._to_first(text))

    def _to_first(self, text: str) -> None:
        """To the first match from the cursor on, or else to the last before it."""
        assert self.state is not None
        assert self.subject is not None
        lanes, here = self.subject.lanes, replace(self.state, at_ns=self.state.at_ns - 1, pinned=None)
        there = going.next_match(lanes, here, 1) or going.next_match(lanes, here, -1)
        if there is None:
            self.said = f"No name on these lanes holds “{printable(text)}”."
        else:
            self.state = departed(self.state, there)
        self.show()

    # What is said of the span

    def action_copy(self) -> None:
        """What is said of the chosen span, to the clipboard of the terminal (OSC 52)."""
        if self.state is None or self.subject is None:
            return
        lines = details(self.subject.lanes, self.state, self.subject.waits)
        self.app.copy_to_clipboard("\n".join("".join(text for text, _ in line).strip(" ▲") for line in lines))
        self.said = "Copied what is said here of the span."
        self.show()

    def action_explain(self) -> None:
        if self.state is None or self.subject is None:
            return
        here = going.chosen(self.subject.lanes, self.state)
        if here is None:
            self.said = NOTHING["span"]
            self.show()
            return
        said = telling.told(self.subject.lanes, *here, self.subject.waits)
        self.app.push_screen(Paragraphs("span", said, self.look))

    def action_help(self) -> None:
        has_mouse = cast("MeshscopeApp", self.app).options.has_mouse
        self.app.push_screen(Keys(self.look, has_mouse=has_mouse))

    def commands(self) -> Iterator[Command]:
        """Every key that goes somewhere, by name."""
        for title, about, action, key in keys.named_actions():
            yield Command(title, about, partial(self._run_by_name, action), key)

    def _run_by_name(self, action: str) -> None:
        self.call_later(self.run_action, action)

    def action_redraw(self) -> None:
        self.refresh(layout=True)

    def action_leave(self) -> None:
        self.dismiss(None)

    # Bookmarks, which are kept beside a recording; traces have no folder of ours

    def _keep(self, times_ns: tuple[int, ...]) -> None:
        if self._folder is None or not bookmarks.keep(self._folder, times_ns):
            self.said = "The bookmark lasts until you leave: there is no folder of this recording to keep it in."


class Keys(Scrolled):
    """All keys by groups."""

    def __init__(self, look: Look, *, has_mouse: bool) -> None:
        super().__init__("timeline", look)
        self._has_mouse = has_mouse

    def body(self, width: int) -> list[Line]:
        return keys.help_lines(width, self._look, has_mouse=self._has_mouse)
