"""Lines that are too long for the screen, on the lines that would stay blank below them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from meshscope.ui.marks.cells import Line, cells, wrapped

_HANGING = "     "
_NO_BREAK = "\u00a0"


def folded(lines: Sequence[Line], width: int, room: int) -> list[Line]:
    """At most ``room`` lines, of which those that are too long take the spare ones, the first line after all others.

    The first line is a name, which may be longer than any screen, and tells least at its end.
    """
    spare = room - len(lines)
    each = [[line] for line in lines[:room]]
    for at in (*range(1, len(each)), 0):
        if spare <= 0 or not each or cells(lines[at]) <= width:
            continue
        each[at] = _folded(lines[at], width, spare + 1)
        spare -= len(each[at]) - 1
    return [line for found in each for line in found]


def _folded(line: Line, width: int, most: int) -> list[Line]:
    """Its last piece is what is folded, below where it begins; what stands before it stays on the first line."""
    *before, (text, role) = line
    indent = text[: len(text) - len(text.lstrip())]
    # A percent sign stays with its number.
    text = text.replace(" %", f"{_NO_BREAK}%")
    first, *more = wrapped(text.strip(), max(width - cells(before) - cell_len(indent), 1), most) or [""]
    rest = text.strip()[len(first) :].strip() if more else ""
    below = wrapped(rest, max(width - len(_HANGING), 1), most - 1) if rest else []
    drawn: list[Line] = [[*before, (indent + first.replace(_NO_BREAK, " "), role)]]
    return drawn + [[(_HANGING + words.replace(_NO_BREAK, " "), role)] for words in below]
