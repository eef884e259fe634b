"""Figures on the screen that can be explained: a drawing says which of its pieces they are, and where they lie is read
from its strips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

_META = "explains"


@dataclass(frozen=True)
class Cell:
    """A number by its name: of one ``rank`` where it is not −1, of the ``run`` that is looked at where that is ""."""

    number: str
    rank: int = -1
    run: str = ""


class Cited(str):
    """The role of a piece that shows a number: it is drawn as that role is, and can be asked about."""

    cell: Cell

    def __new__(cls, role: str, number: str, *, rank: int = -1, run: str = "") -> Cited:
        made = super().__new__(cls, role)
        made.cell = Cell(number, rank, run)
        return made


@dataclass(frozen=True)
class Spot:
    """Where a cell is drawn: ``line`` of a drawing, from cell ``start`` on."""

    cell: Cell
    line: int
    start: int
    width: int


@lru_cache(maxsize=4096)
def marked(style: Style | None, cell: Cell) -> Style:
    """The style of a piece that can be asked about; it looks as before."""
    return (style or Style()) + Style.from_meta({_META: (cell.number, cell.rank, cell.run)})


def cell_of(style: Style | None) -> Cell | None:
    """What a piece of that style can be asked about."""
    told = style.meta.get(_META) if style is not None and style.meta else None
    return Cell(*told) if told is not None else None


def spots(strips: Sequence[Strip]) -> list[Spot]:
    """Everything in a drawing that can be asked about, line by line."""
    found = []
    for line, strip in enumerate(strips):
        at = 0
        for segment in strip:
            width = cell_len(segment.text)
            cell = cell_of(segment.style)
            if cell is not None:
                found.append(Spot(cell, line, at, width))
            at += width
    return found


def lit(strip: Strip, spot: Spot) -> Strip:
    """The strip with the cursor on a spot: the spot in reverse, which every terminal shows."""
    at = 0
    segments = []
    for segment in strip:
        is_it = at == spot.start
        style = (segment.style or Style()) + Style(reverse=True, dim=False) if is_it else segment.style
        segments.append(Segment(segment.text, style, segment.control))
        at += cell_len(segment.text)
    return Strip(segments, strip.cell_length)


def moved(found: Sequence[Spot], here: Cell, *, down: int = 0, along: int = 0) -> Cell:
    """The cell next to one: the nearest ``down`` lines that have any, or the next ``along`` as they are read.

    The one itself where there is none in that direction; the first where the one is gone.
    """
    at = next((number for number, spot in enumerate(found) if spot.cell == here), None)
    if at is None:
        return found[0].cell
    if along:
        return found[min(max(at + along, 0), len(found) - 1)].cell
    spot = found[at]
    lines = sorted({other.line for other in found if (other.line - spot.line) * down > 0}, reverse=down < 0)
    if not lines:
        return here
    centre = 2 * spot.start + spot.width
    return min((o for o in found if o.line == lines[0]), key=lambda o: abs(2 * o.start + o.width - centre)).cell
