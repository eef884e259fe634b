"""Numbers that stand below one another: their points in one line, whatever unit is written behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from meshscope.ui.marks.cells import Piece
from meshscope.units import UNKNOWN, Unit

_NUMBER = re.compile(r"(?P<whole>[−+-]?\d(?:[\d \u2009\u202f]*\d)?)(?:\.\d+)?(?:±[\d.]+)?(?: ?[^\d\s±]+)?")
_MOST_DECIMALS = 6


def in_line(texts: Sequence[str], width: int) -> list[str]:
    """The texts with blanks behind them, so that at the right of a column their points stand in one line.

    What is not known ends where whole numbers do. As they are where ``width`` cells are too few for that, and where
    any is more than a number with its spread or its unit.
    """
    before, after = _extents(texts)
    is_of_numbers = all(_NUMBER.fullmatch(text) for text in texts if text not in ("", UNKNOWN))
    if not is_of_numbers or max(before, default=0) + max(after, default=0) > width:
        return list(texts)
    return [text + " " * (max(after) - size) for text, size in zip(texts, after, strict=True)]


@dataclass(frozen=True)
class Written:
    """How the numbers of one column are written: in one unit, with at most so many decimals."""

    unit: Unit
    most: int
    is_bare: bool

    def __call__(self, value: float) -> str:
        return (self.unit.figure if self.is_bare else self.unit.written)(value, self.most)


def alike(values: Iterable[float], unit: Unit, width: int, *, is_bare: bool = False) -> Written:
    """One way for all numbers of a column; decimals are lost only where ``width`` cells are too few for them in line.

    ``is_bare``: the unit stands in the heading.
    """
    given = list(values)
    for most in range(_MOST_DECIMALS, 0, -1):
        write = Written(unit, most, is_bare)
        before, after = _extents([write(value) for value in given])
        if max(before, default=0) + max(after, default=0) <= width:
            return write
    return Written(unit, 0, is_bare)


def _extents(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """Cells of each up to the point of its number, and from there on."""
    found = [(_NUMBER.match(text), text) for text in texts]
    before = [cell_len(match["whole"] if match else text) for match, text in found]
    return before, [cell_len(text) - size for text, size in zip(texts, before, strict=True)]


def pieces(text: str, role: str) -> list[Piece]:
    """One of them as it is drawn: the blanks behind it are no part of the number."""
    bare = text.rstrip()
    return [(bare, role), (" " * (len(text) - len(bare)), "text")] if bare != text else [(text, role)]
