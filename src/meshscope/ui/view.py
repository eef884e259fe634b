"""A panel on the screen: its title, the drawing of its newest answer, and how fresh that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import replace

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip

from meshscope.ui.asking import Answered, Asking
from meshscope.ui.canvas import Canvas
from meshscope.ui.hands import Hands
from meshscope.ui.marks.cells import Piece, clip, cut, strip
from meshscope.ui.marks.cited import Cell, Spot, cell_of, lit, spots
from meshscope.ui.panel import Frame, Panel, note, refusal
from meshscope.ui.words import freshness
from meshscope.units import printable

_KEPT = 8


class PanelView(Canvas):
    """Draws one panel. What is drawn depends on nothing but the answer, the frame and the focus."""

    class Clicked(Message):
        """Somebody pointed at this panel, at a line of its drawing (−1: its title), and perhaps at a number."""

        def __init__(self, panel: Panel, line: int, cell: Cell | None = None) -> None:
            super().__init__()
            self.panel = panel
            self.line = line
            self.cell = cell

    class Scrolled(Message):
        """The wheel was turned over this panel: ``by`` lines towards the past."""

        def __init__(self, panel: Panel, by: int) -> None:
            super().__init__()
            self.panel = panel
            self.by = by

    def __init__(self, panel: Panel, hands: Hands | None = None) -> None:
        super().__init__(id=panel.name)
        self.panel = panel
        self.asking = Asking(panel, hands)
        self._shown: list[Strip] = []
        self._drawn: dict[str, dict[Hashable, list[Strip]]] = {}

    def show(
        self, frame: Frame, *, is_focused: bool, page: str = "", of: str = "", lit_cell: Cell | None = None
    ) -> None:
        """Draw into ``frame`` (its title and freshness line included), with the cursor on ``lit_cell``.

        ``of`` is the name of the run that the title tells, where nothing else on the screen does.
        """
        answered = self.asking.answers.get("" if self.panel.is_overall else frame.selected)
        inner = replace(frame, height=max(frame.height - (1 if self.panel.is_overall else 2), 0))
        lines = [*self._head(inner, page, printable(of), is_focused=is_focused), *self._body(answered, inner)]
        if not self.panel.is_overall:
            lines += self._foot(answered, inner)
        self._shown = lines[: frame.height]
        self.paint(self._shown if lit_cell is None else self._lit(lit_cell))

    @property
    def spots(self) -> list[Spot]:
        """The numbers that can be explained, where they are drawn now."""
        return spots(self._shown)

    def _lit(self, cell: Cell) -> list[Strip]:
        """What is shown, with the cursor on a number."""
        spot = next((spot for spot in self.spots if spot.cell == cell), None)
        if spot is None:
            return self._shown
        return [lit(line, spot) if at == spot.line else line for at, line in enumerate(self._shown)]

    def _head(self, frame: Frame, page: str, of: str, *, is_focused: bool) -> list[Strip]:
        key = (frame.width, frame.look, page, of, is_focused, frame.mark)
        return self._kept(
            "head", key, lambda: [strip(self._title(frame, page, of, is_focused=is_focused), frame.width, frame.look)]
        )

    def _foot(self, answered: Answered | None, frame: Frame) -> list[Strip]:
        text = ""
        caveat = f" {frame.caveat} ·" if frame.caveat else ""
        if answered is not None and answered.error is None:
            room = frame.width - 1 - len(caveat)
            text = " " + freshness(self.panel.fresh(answered.answer), frame.now_unix_ns, room)
        key = (frame.width, frame.look, text, caveat)
        line: list[Piece] = [(caveat if text.strip() else caveat.removesuffix(" ·"), "warn"), (text, "faint")]
        return self._kept("foot", key, lambda: [strip(line, frame.width, frame.look)])

    def _body(self, answered: Answered | None, frame: Frame) -> list[Strip]:
        """The drawing, kept until the answer or anything but the time changes."""
        key = (answered, replace(frame, now_unix_ns=0, caveat="", mark=""))
        return self._kept("body", key, lambda: self._draw(answered, frame))

    def _kept(self, part: str, key: Hashable, draw: Callable[[], list[Strip]]) -> list[Strip]:
        """The strips of a part as they were drawn for this key, drawn now if they were not.

        The last few are kept, so that going back and forth between strategies draws nothing anew.
        """
        kept = self._drawn.setdefault(part, {})
        if key not in kept:
            while len(kept) >= _KEPT:
                del kept[next(iter(kept))]
            kept[key] = draw()
        return kept[key]

    def _draw(self, answered: Answered | None, frame: Frame) -> list[Strip]:
        if answered is None:
            return note(f"Reading… {self.panel.promise}", frame)
        if answered.error is not None:
            return refusal(answered.error, frame)
        begun_s = time.thread_time()
        drawn = self.panel.draw(self.panel.turned(answered.answer, frame.turn), frame)
        self.asking.drawn_s = time.thread_time() - begun_s
        return drawn

    def _title(self, frame: Frame, page: str, of: str, *, is_focused: bool) -> list[Piece]:
        line: list[Piece] = [
            (f"{self.panel.sign} ", "key" if is_focused else "faint"),
            *([(frame.mark, "warn"), (" · ", "faint")] if frame.mark else []),
            (self.panel.title, "accent" if is_focused else "strong"),
            (" ", "text"),
        ]
        if of:
            room = frame.width - sum(cell_len(text) for text, _ in line) - len(page) - 3
            line += [("· ", "faint"), (clip(of, max(room, 1)), "strong"), (" ", "text")]
        if sum(cell_len(text) for text, _ in line) + len(page) > frame.width:
            page = page.replace(" page", "")
        used = sum(cell_len(text) for text, _ in line) + len(page)
        rule = ("━" if is_focused else "─") * max(frame.width - used, 0)
        return cut([*line, (rule, "accent" if is_focused else "faint"), (page, "quiet")], frame.width)

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Clicked(self.panel, event.y - 1, cell_of(event.style)))

    def on_mouse_scroll_up(self, _: events.MouseScrollUp) -> None:
        self.post_message(self.Scrolled(self.panel, 1))

    def on_mouse_scroll_down(self, _: events.MouseScrollDown) -> None:
        self.post_message(self.Scrolled(self.panel, -1))
