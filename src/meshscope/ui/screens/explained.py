"""What a number on the screen is made of, in a frame over it; the screen goes on below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from meshscope.analysis.explaining.number import Explanation
from meshscope.analysis.explaining.words import Said, paragraphs
from meshscope.errors import MeshscopeError
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, cut, filled, named, wrapped
from meshscope.ui.screens.dialog import Dialog
from meshscope.units import printable

_WIDEST, _LONGEST = 100, 12
_MARGIN = 4
_FRAME = 2
_ROLES = {"value": "strong", "text": "text", "quiet": "quiet", "head": "accent"}


class Explained(Dialog):
    """Says that it is being worked out until ``tell`` brings the answer; scrolls what finds no room.

    ``caveat`` says what the answer does not stand on yet.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,e,enter,question_mark", "answer(None)", show=False),
        Binding("up,k", "scroll_lines(-1)", show=False),
        Binding("down,j", "scroll_lines(1)", show=False),
        Binding("pageup", "scroll_pages(-1)", show=False),
        Binding("pagedown,space", "scroll_pages(1)", show=False),
        Binding("home", "scroll_lines(-99999)", show=False),
        Binding("end", "scroll_lines(99999)", show=False),
    ]

    def __init__(self, title: str, look: Look, *, caveat: str = "") -> None:
        super().__init__(title, (), look)
        self._said: Sequence[Said] = (Said("Working it out…", role="quiet"),)
        self._caveat = caveat
        self._first = 0

    def tell(self, found: Explanation | MeshscopeError) -> None:
        """Show the answer, or why there is none."""
        if isinstance(found, MeshscopeError):
            self._said = (Said(printable(found.message)), Said(printable(found.hint), role="quiet"))
        else:
            self._said = paragraphs(found)[1:]
        self.show()

    def show(self) -> None:
        width = max(min(self.size.width - _MARGIN, _WIDEST), 1)
        lines = [line for said in self._said for line in self._drawn(said, width)]
        room = max(self.size.height - _FRAME - 2, 1)
        self._first = min(self._first, max(len(lines) - room, 0))
        kept = lines[self._first : self._first + room]
        self._lines = [*(filled(line, width) for line in kept), [], self._foot(len(lines), room, width)]
        super().show()

    def _drawn(self, said: Said, width: int) -> list[Line]:
        indent = "  " * said.depth
        texts = wrapped(said.text, max(width - len(indent) - 2, 1), _LONGEST)
        role = _ROLES[said.role]
        hanging = "  " if said.depth else ""
        lines: list[Line] = [[(f"{indent}{hanging if at else ''}{text}", role)] for at, text in enumerate(texts)]
        return [[], *lines] if said.role == "value" else lines

    def _foot(self, count: int, room: int, width: int) -> Line:
        keys: Line = [("esc", "key"), (" back", "quiet")]
        if count > room:
            last = min(self._first + room, count)
            at = f"   lines {self._first + 1}–{last} of {count}"
            keys = [(named("↑↓", self._look), "key"), (" scroll  ", "quiet"), *keys, (at, "faint")]
        return cut([*keys, (f"   {self._caveat}" if self._caveat else "", "warn")], width)

    def action_scroll_lines(self, by: int) -> None:
        self._first = max(self._first + by, 0)
        self.show()

    def action_scroll_pages(self, by: int) -> None:
        self.action_scroll_lines(by * max(self.size.height - _FRAME - 2, 1))
