"""A framed text that may be longer than the screen."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from meshscope.ui.marks.cells import Line, cut, filled, named
from meshscope.ui.screens.dialog import Dialog

_MARGIN, _FRAME = 4, 2


class Scrolled(Dialog):
    """Heirs say what it holds for a width; what finds no room is scrolled to."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_lines(-1)", show=False),
        Binding("down,j", "scroll_lines(1)", show=False),
        Binding("pageup", "scroll_pages(-1)", show=False),
        Binding("pagedown,space", "scroll_pages(1)", show=False),
        Binding("home", "scroll_lines(-99999)", show=False),
        Binding("end", "scroll_lines(99999)", show=False),
    ]

    first = 0

    def content(self, width: int) -> list[Line]:
        """All lines, at most ``width`` cells wide."""
        raise NotImplementedError

    @property
    def widest(self) -> int:
        """No wider than this, however wide the screen is."""
        return 100

    def show(self) -> None:
        width = max(min(self.size.width - _MARGIN, self.widest), 1)
        lines = self.content(width)
        room = max(self.size.height - _FRAME - 2, 1)
        self.first = max(min(self.first, len(lines) - room), 0)
        shown = lines[self.first : self.first + room]
        self._lines = [*(filled(line, width) for line in shown), [], self._foot(len(lines), room, width)]
        super().show()

    def keys(self) -> list[tuple[str, str]]:
        """The keys that its last line names, beside those that scroll."""
        return [("esc", "back")]

    def _foot(self, count: int, room: int, width: int) -> Line:
        scrolls = [(named("↑↓", self._look), "scroll")] if count > room else []
        at = f" lines {self.first + 1}–{min(self.first + room, count)} of {count}" if count > room else ""
        pieces: list[tuple[str, str]] = []
        for key, word in (*scrolls, *self.keys()):
            pieces += [(key, "key"), (f" {word}  ", "quiet")]
        return cut([*pieces, (at, "quiet")], width)

    def action_scroll_lines(self, by: int) -> None:
        self.first = max(self.first + by, 0)
        self.show()

    def action_scroll_pages(self, by: int) -> None:
        self.action_scroll_lines(by * max(self.size.height - _FRAME - 2, 1))

    def on_mouse_scroll_up(self, _: events.MouseScrollUp) -> None:
        self.action_scroll_lines(-3)

    def on_mouse_scroll_down(self, _: events.MouseScrollDown) -> None:
        self.action_scroll_lines(3)
