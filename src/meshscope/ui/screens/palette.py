"""Everything the screen can do, by name: typed letters narrow the list, enter does it.

Textual's own palette is drawn in characters that a poor font does not have, and knows nothing of a terminal's own
colours; this one is drawn like every other dialog.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from meshscope.ui.canvas import Canvas
from meshscope.ui.commands import Command, matching
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, clip, left, named, right
from meshscope.ui.screens.dialog import Dialog

_WIDEST, _MARGIN, _TITLE, _KEY = 100, 4, 38, 6
_AROUND = 6


class Palette(Dialog, inherit_bindings=False):  # a command may have a q in it
    """Answers with the title of a command, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c,ctrl+q,ctrl+p", "answer(None)", show=False),
        Binding("enter", "choose", show=False),
        Binding("up,shift+tab", "move(-1)", show=False),
        Binding("down,tab", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("backspace", "erase(1)", show=False),
        Binding("ctrl+u", "erase(9999)", show=False),
        # What was typed ahead comes by way of the screen below, so it is bound too; none has priority, which would let
        # it overtake what was typed before it.
        *(Binding(letter, f"type('{letter}')", show=False) for letter in ascii_lowercase),
    ]

    def __init__(self, commands: Sequence[Command], look: Look) -> None:
        super().__init__("commands", (), look)
        self._commands = commands
        self._typed = ""
        self._at = 0
        self._first = 0

    @property
    def found(self) -> list[Command]:
        """What is left of the list, the best match first."""
        return matching(self._commands, self._typed)

    @property
    def _room(self) -> int:
        return max(min(self.size.height - _AROUND, len(self._commands)), 1)

    def show(self) -> None:
        width = max(min(self.size.width - _MARGIN, _WIDEST), 20)
        found, room = self.found, self._room
        self._first = min(max(self._first, self._at - room + 1), self._at, max(len(found) - room, 0))
        rows = list(enumerate(found))[self._first : self._first + room]
        caret = "_" if self._look.is_ascii else "█"
        lines: list[Line] = [[("> ", "accent"), (left(self._typed + caret, width - 2), "strong")]]
        lines += [self._row(one, width, is_here=at == self._at) for at, one in rows]
        if not found:
            lines.append([("  nothing is called that", "quiet")])
        lines += [[]] * (room + 1 - len(lines))
        more = f"   {self._at + 1} of {len(found)}" if found else ""
        self._lines = [*lines, self._foot(more)]
        super().show()

    def _foot(self, more: str) -> list[Piece]:
        pieces: list[Piece] = []
        for key, word in ((named("↑↓", self._look), "choose"), ("enter", "do it"), ("esc", "back")):
            pieces += [(key, "key"), (f" {word}  ", "quiet")]
        return [*pieces, (more, "quiet")]

    def _row(self, one: Command, width: int, *, is_here: bool) -> list[Piece]:
        title = min(_TITLE, width - _KEY - 3)
        about = width - 2 - title - _KEY - 1
        return [
            ("▸ " if is_here else "  ", "accent"),
            (left(one.title, title), "strong" if is_here else "text"),
            (left(clip(one.about, about - 1), about) if about > 8 else " " * max(about, 0), "quiet"),
            (right(named(one.key, self._look), _KEY + 1), "key"),
        ]

    def _change(self, typed: str) -> None:
        self._typed, self._at, self._first = typed, 0, 0
        self.show()

    def action_type(self, letter: str) -> None:
        self._change(self._typed + letter)

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character.isprintable():
            event.stop()
            self._change(self._typed + event.character)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._change(self._typed + "".join(c for c in event.text if c.isprintable()))

    def on_click(self, event: events.Click) -> None:
        at = event.screen_y - self.query_one(Canvas).region.y - 2 + self._first
        if self._first <= at < min(len(self.found), self._first + self._room):
            self.dismiss(self.found[at].title)

    def action_move(self, by: int) -> None:
        self._at = min(max(self._at + by, 0), max(len(self.found) - 1, 0))
        self.show()

    def action_erase(self, count: int) -> None:
        self._change(self._typed[:-count])

    def action_choose(self) -> None:
        found = self.found
        if found:
            self.dismiss(found[self._at].title)
