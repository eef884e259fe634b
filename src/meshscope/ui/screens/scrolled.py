"""A framed text that scrolls where it finds no room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, cut, filled, named, wrapped
from meshscope.ui.screens.dialog import Dialog

if TYPE_CHECKING:
    from meshscope.analysis.explaining.words import Said

_WIDEST, _LONGEST = 100, 12
_MARGIN = 4
_FRAME = 2
_ROLES = {"value": "strong", "text": "text", "quiet": "quiet", "head": "accent"}


class Scrolled(Dialog):
    """Shows what ``body`` says for a width; ``caveat`` stands at its foot."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,e,enter,question_mark,f1", "answer(None)", show=False),
        Binding("up,k", "scroll_lines(-1)", show=False),
        Binding("down,j", "scroll_lines(1)", show=False),
        Binding("pageup", "scroll_pages(-1)", show=False),
        Binding("pagedown,space", "scroll_pages(1)", show=False),
        Binding("home", "scroll_lines(-99999)", show=False),
        Binding("end", "scroll_lines(99999)", show=False),
    ]
    widest = _WIDEST

    def __init__(self, title: str, look: Look, *, caveat: str = "") -> None:
        super().__init__(title, (), look)
        self._caveat = caveat
        self._first = 0

    def body(self, width: int) -> list[Line]:
        raise NotImplementedError

    def show(self) -> None:
        width = max(min(self.size.width - _MARGIN, self.widest), 1)
        lines = self.body(width)
        room = max(self.size.height - _FRAME - 2, 1)
        self._first = min(self._first, max(len(lines) - room, 0))
        kept = lines[self._first : self._first + room]
        self._lines = [*(filled(line, width) for line in kept), [], self._foot(len(lines), room, width)]
        super().show()

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


def paragraph(said: Said, width: int) -> list[Line]:
    """A paragraph on as many lines as it needs, set in by its depth; a value stands apart from what is above it."""
    indent = "  " * said.depth
    texts = wrapped(said.text, max(width - len(indent) - 2, 1), _LONGEST)
    role = _ROLES[said.role]
    hanging = "  " if said.depth else ""
    lines: list[Line] = [[(f"{indent}{hanging if at else ''}{text}", role)] for at, text in enumerate(texts)]
    return [[], *lines] if said.role == "value" else lines


class Paragraphs(Scrolled):
    """Shows paragraphs that are known."""

    def __init__(self, title: str, said: Sequence[Said], look: Look) -> None:
        super().__init__(title, look)
        self._paragraphs = said

    def body(self, width: int) -> list[Line]:
        return [line for said in self._paragraphs for line in paragraph(said, width)]
