"""The help of a board: the panel that has the focus, the keys, and what the textures mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from meshscope.ui.clipboard import TMUX
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, cells, cut, filled, left, named, wrapped
from meshscope.ui.palette import texture
from meshscope.ui.panel import Panel
from meshscope.ui.screens.dialog import MEANINGS
from meshscope.ui.screens.scrolled import Scrolled

Pairs = Sequence[tuple[str, str]]

_WIDEST, _TWO_COLUMNS = 150, 108
_GAP = 3
_KEYS_WIDTH = 64
_LONGEST = 8


class Help(Scrolled):
    """Two columns where there is room for them, else one below the other; tab goes to the next part."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "part", show=False, priority=True),
    ]

    widest = _WIDEST

    def __init__(self, look: Look, keys: Pairs, panel: Panel | None = None) -> None:
        super().__init__("help", look)
        self._keys = keys
        self._panel = panel
        self._starts: list[int] = [0]

    def body(self, width: int) -> list[Line]:
        about = self._panel
        if about is None or about.help is None:
            return self._general(width)
        self._starts = [0]
        if width >= _TWO_COLUMNS:
            side = width - _KEYS_WIDTH - _GAP
            return beside(self._general(_KEYS_WIDTH), panel_lines(about, side, self._look), _KEYS_WIDTH)
        first = [*panel_lines(about, width, self._look), []]
        self._starts = [0, len(first)]
        return [*first, *self._general(width)]

    def _general(self, width: int) -> list[Line]:
        keys = [(named(key, self._look), what) for key, what in self._keys]
        lines: list[Line] = [[("keys", "accent")], *_pairs(keys, 14, width, "key")]
        lines += [[], [("textures", "accent")]]
        for name, what in MEANINGS:
            sign = texture(name, self._look) * 3
            said = wrapped(what, max(width - 16, 8), _LONGEST)
            lines.append([(sign, name), (f"  {name:<11}", "text"), (said[0], "quiet")])
            lines += [[(" " * 16 + more, "quiet")] for more in said[1:]]
        note = f"y copies by OSC 52; {TMUX}"
        return [*lines, [], *([(line, "quiet")] for line in wrapped(note, width, _LONGEST))]

    def _foot(self, count: int, room: int, width: int) -> Line:
        part: Line = [("tab", "key"), (" next part  ", "quiet")] if len(self._starts) > 1 else []
        return cut([*part, *super()._foot(count, room, width)], width)

    def action_part(self) -> None:
        self._first = next((start for start in self._starts if start > self._first), 0)
        self.show()


def panel_lines(panel: Panel, width: int, look: Look) -> list[Line]:
    """What a panel says of itself, in at most ``width`` cells."""
    told = panel.help
    if told is None:
        return []
    lines: list[Line] = [[(f"{panel.sign} {panel.title}", "accent")]]
    lines += [[(line, "text")] for line in wrapped(told.what, width, _LONGEST)]
    for pairs, role in ((told.columns, "strong"), (told.states, "quiet"), (told.keys, "key")):
        if pairs:
            shown = [(named(key, look), what) for key, what in pairs]
            lines += [[], *_pairs(shown, min(max(len(key) for key, _ in shown), 16), width, role)]
    return lines


def _pairs(pairs: Pairs, wide: int, width: int, role: str) -> list[Line]:
    """Each pair on a line, what it means folded beside it; a long first half stands on a line of its own."""
    lines: list[Line] = []
    for key, what in pairs:
        said = wrapped(what, max(width - wide - 2, 8), _LONGEST) or [""]
        if len(key) > wide:
            lines.append([(key, role)])
        else:
            lines.append([(left(key, wide) + "  ", role), (said.pop(0), "text")])
        lines += [[(" " * (wide + 2) + more, "text")] for more in said]
    return lines


def beside(one: Sequence[Line], other: Sequence[Line], width: int) -> list[Line]:
    """Two columns, the first in ``width`` cells."""
    height = max(len(one), len(other))
    first, second = [*one, *[[]] * (height - len(one))], [*other, *[[]] * (height - len(other))]
    return [
        [*filled(a, width), (" " * _GAP, "text"), *b] if cells(b) else a for a, b in zip(first, second, strict=True)
    ]
