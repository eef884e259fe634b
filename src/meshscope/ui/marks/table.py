"""Columns of fixed width: headings with units above, numbers at the right, and what gives way when room is short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meshscope.ui.marks import figures
from meshscope.ui.marks.cells import Piece, cells, cut, left, right

_DISPENSABLE = 5


@dataclass(frozen=True)
class Column:
    """``width`` cells; ``rank`` 0 always stays, higher ones leave first (5 and up before a picture shrinks).

    ``grows`` takes up to ``most`` cells where there is room to spare, and gives cells down to ``least`` where room is
    short: a picture may shrink, a number may not be cut. Spare room goes first to those of the lowest ``yields``.
    """

    name: str
    heading: str
    width: int
    rank: int = 0
    is_text: bool = False
    grows: bool = False
    most: int = 0
    least: int = 0
    gap: int = 2
    yields: int = 0


@dataclass(frozen=True)
class Placed:
    """A column that found room: it starts at cell ``start`` and takes ``width``."""

    column: Column
    start: int
    width: int


def placed(columns: Sequence[Column], width: int) -> tuple[Placed, ...]:
    """The columns that fit ``width`` cells, in their order; those of the highest rank leave first."""
    kept = list(columns)
    # What can be done without leaves before a picture shrinks, and a picture shrinks before the rest leaves.
    for needed, rank in ((_needed, _DISPENSABLE - 1), (_least, 0)):
        while len(kept) > 1 and needed(kept) > width and max(column.rank for column in kept) > rank:
            kept.remove(max(reversed(kept), key=lambda column: column.rank))
    spare = width - _needed(kept)
    sizes: dict[str, int] = {}
    for column in sorted(kept, key=lambda column: column.yields if spare > 0 else 0):
        least = min(column.least or column.width, column.width)
        size = max(min(column.width + spare, column.most), least) if column.grows else column.width
        spare -= size - column.width
        sizes[column.name] = size
    found, at = [], 0
    for index, column in enumerate(kept):
        start = at + (column.gap if index else 0)
        found.append(Placed(column, start, sizes[column.name]))
        at = start + sizes[column.name]
    return tuple(found)


def heading(columns: Sequence[Placed], role: str = "quiet") -> list[Piece]:
    """The line of headings."""
    return row(columns, {p.column.name: [(p.column.heading, role)] for p in columns})


def rows(columns: Sequence[Placed], contents: Sequence[dict[str, list[Piece]]]) -> list[list[Piece]]:
    """Lines below one another, as ``row`` draws them; the numbers of a column have their points in one line.

    Those are the first of its pieces; what stands behind them, such as a spread, stays in line too.
    """
    given = [dict(content) for content in contents]
    for place in columns:
        name = place.column.name
        filled = [content for content in given if content.get(name)]
        if place.column.is_text or len(filled) < 2:
            continue
        behind = max(cells(content[name][1:]) for content in filled)
        lined = figures.in_line([content[name][0][0] for content in filled], place.width - behind)
        for content, text in zip(filled, lined, strict=True):
            (_, role), *more = content[name]
            content[name] = [*figures.pieces(text, role), *more]
    return [row(columns, content) for content in given]


def row(columns: Sequence[Placed], content: dict[str, list[Piece]]) -> list[Piece]:
    """One line: each column's pieces at its place; numbers at the right, text at the left, absent is blank."""
    line: list[Piece] = []
    at = 0
    for place in columns:
        line.append((" " * (place.start - at), "text"))
        line += _within(content.get(place.column.name, []), place)
        at = place.start + place.width
    return line


def _within(pieces: list[Piece], place: Placed) -> list[Piece]:
    if len(pieces) == 1:
        text, role = pieces[0]
        return [((left if place.column.is_text else right)(text, place.width), role)]
    pieces = cut(pieces, place.width)
    blank: Piece = (" " * (place.width - cells(pieces)), "text")
    return [*pieces, blank] if place.column.is_text else [blank, *pieces]


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.width + (column.gap if index else 0) for index, column in enumerate(columns))


def _least(columns: Sequence[Column]) -> int:
    give = sum(column.width - column.least for column in columns if column.grows and column.least)
    return _needed(columns) - give
