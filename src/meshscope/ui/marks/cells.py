"""Lines of text in roles, cut to the cell, and turned into strips."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from meshscope.ui.look import Look
from meshscope.ui.marks.cited import Cited, marked
from meshscope.ui.palette import styles
from meshscope.units import printable

Piece = tuple[str, str]
Line = Sequence[Piece]

# One cell for one cell, so that what was aligned stays aligned.
_PLAIN = str.maketrans({
    "–": "-", "—": "-", "−": "-", "·": "|", "±": "~", "×": "x", "µ": "u", "▸": ">", "◂": "<", "●": "*",
    "○": "o", "◐": "*", "✓": "+", "✗": "x", "■": "#", "▲": "^", "▴": "^", "▾": "v", "▶": ">", "▌": "|", "│": "|",
    "─": "-", "━": "=", "╸": "=", "└": "+", "┴": "+", "┬": "+", "├": "+", "↑": "^", "↓": "v", "←": "<", "→": ">",
    "⏎": "<", "⇥": ">", "‖": "=", "�": "?", "\u2009": " ", "\u202f": " ", "\u00a0": " ", "’": "'", "“": '"', "”": '"',
    "≤": "<", "≥": ">", "≈": "~", "△": "!", "†": "*", "≠": "!", "╵": "'", "▏": "|", "◆": "*", "▼": "v", "☐": " ",
    "☑": "x", "Δ": "d", "σ": "s", "°": "o",
})  # fmt: skip

_BETWEEN = re.compile(r"(?<=\b\d)…(?=\d+\b)|(?<=\b\d\d)…(?=\d+\b)|(?<=\b\d\d\d)…(?=\d+\b)")
"""In ranges such as ``1…9``, which would lose a digit."""
_BEFORE_BLANKS = re.compile(r"… (?= |$)")
_AFTER = re.compile(r"[^…]…", re.DOTALL)
_FIRST = re.compile(r"…[^…]", re.DOTALL)


def plain(text: str) -> str:
    """The same cells in ASCII; what has no likeness becomes ``?``, once per cell."""
    likeness = text.replace("°C", "C ").translate(_PLAIN)
    if likeness.isascii():
        return likeness
    likeness = "".join(c if c.isascii() or c == "…" else "?" * cell_len(c) for c in likeness)
    return _dotted(likeness) if "…" in likeness else likeness


def _dotted(text: str) -> str:
    """``…`` as two full stops, since one reads as an end: the second takes the cell of a blank, else of a letter."""
    text = _BETWEEN.sub("-", text)
    text = _BEFORE_BLANKS.sub("..", text)
    text = _AFTER.sub("..", text)
    return _FIRST.sub("..", text).replace("…", ".")


def named(keys: str, look: Look) -> str:
    """Keys as they are written: arrows to the sides in words where ASCII would make them those of the speed."""
    return keys.replace("← →", "left/right").replace("←→", "left/right") if look.is_ascii else keys


def clip(text: str, width: int) -> str:
    """At most ``width`` cells of printable text; what is cut off is shown as ``…``."""
    if width <= 0:
        return ""
    text = printable(text)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + "…" if width > 1 else "…"


def middle_out(text: str, width: int) -> str:
    """At most ``width`` cells of printable text, of which the middle gives way: what differs is often at the end."""
    text = printable(text)
    if cell_len(text) <= width or width < 5:
        return clip(text, width)
    tail = text[-(width * 3 // 5) :]
    while cell_len(tail) > width * 3 // 5:
        tail = tail[1:]
    return clip(text, width - cell_len(tail)) + tail


def longest(words: Sequence[str], width: int) -> str:
    """The first that takes at most ``width`` cells, or the last."""
    return next((text for text in words if cell_len(text) <= width), words[-1])


def left(text: str, width: int) -> str:
    """Exactly ``width`` cells, text at the left."""
    return set_cell_size(clip(text, width), width) if width > 0 else ""


def right(text: str, width: int) -> str:
    """Exactly ``width`` cells, text at the right."""
    text = clip(text, width)
    return " " * (width - cell_len(text)) + text


def cells(line: Iterable[Piece]) -> int:
    """How many cells a line takes."""
    return sum(cell_len(text) for text, _ in line)


def cut(line: Line, width: int) -> list[Piece]:
    """The line in at most ``width`` cells, ending in ``…`` where something had to go."""
    if cells(line) <= width:
        return list(line)
    kept: list[Piece] = []
    room = width
    for text, role in line:
        size = cell_len(text)
        if size >= room:
            # Something follows or is cut here, so the last cell says so.
            kept.append((clip(text + "…", room), role))
            break
        kept.append((text, role))
        room -= size
    return kept


def filled(line: Line, width: int, role: str = "text") -> list[Piece]:
    """The line in exactly ``width`` cells."""
    kept = cut(line, width)
    missing = width - cells(kept)
    return [*kept, (" " * missing, role)] if missing > 0 else kept


def ends(first: Line, last: Line, width: int) -> list[Piece]:
    """``first`` at the left and ``last`` at the right of ``width`` cells; the first gives way."""
    last = cut(last, width)
    room = width - cells(last)
    return [*filled(first, max(room - 1, 0)), *([(" ", "text")] if room > 0 else []), *last]


def wrapped(text: str, width: int, most: int) -> list[str]:
    """Words on at most ``most`` lines of ``width`` cells; the last line is clipped."""
    lines: list[str] = []
    rest = text.strip()
    while rest and len(lines) < most - 1 and cell_len(rest) > width:
        head = set_cell_size(rest, width)
        at = head.rfind(" ")
        at = at if at > width // 3 else len(head.rstrip())
        lines.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return [*lines, clip(rest, width)] if rest else lines


def aired(lines: Sequence[Line], room: int) -> list[Line]:
    """The lines with a blank one after each, where ``room`` lines are enough for that; else as they are."""
    if 2 * len(lines) > room:
        return list(lines)
    return [line for pair in ((line, ()) for line in lines) for line in pair]


def strip(line: Line, width: int, look: Look) -> Strip:
    """A strip of exactly ``width`` cells; neighbours of one role become one segment, those that are cited aside.

    Whatever was forgotten before, nothing that is drawn steers the terminal.
    """
    line = [(printable(text), role) for text, role in line]
    segments: list[Segment] = []
    run: list[str] = []
    current: str | None = None
    for text, role in filled(line, width):
        if run and (role != current or isinstance(role, Cited) or isinstance(current, Cited)):
            segments.append(_segment("".join(run), _style(current, look), look))
            run = []
        current = role
        run.append(text)
    if run:
        segments.append(_segment("".join(run), _style(current, look), look))
    return Strip(segments, width)


def _style(role: str | None, look: Look) -> Style | None:
    style = styles(look)[role or "text"]
    return marked(style, role.cell) if isinstance(role, Cited) else style


def strips(lines: Iterable[Line], width: int, height: int, look: Look) -> list[Strip]:
    """Exactly ``height`` strips: the lines, then blank ones."""
    drawn = [strip(line, width, look) for line in list(lines)[:height]]
    return drawn + [strip((), width, look)] * (height - len(drawn))


def _segment(text: str, style: Style | None, look: Look) -> Segment:
    return Segment(plain(text) if look.is_ascii else text, style)
