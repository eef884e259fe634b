"""Area charts at twice the cells: in braille two values stand side by side in a cell, four dots high."""

from __future__ import annotations

import math

import numpy as np

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Piece
from meshscope.ui.marks.sparkline import Floats, level, skyline

_BRAILLE = 0x2800
# The dots of a column from the lowest to the highest, of the left and of the right one.
_LEFT = (0x40, 0x04, 0x02, 0x01)
_RIGHT = (0x80, 0x20, 0x10, 0x08)
DOTS_PER_CELL = len(_LEFT)


def dotted(
    values: Floats, width: int, look: Look, *, low: float, high: float, height: int = 1, role: str = "gauge"
) -> list[list[Piece]]:
    """``height`` lines of areas between ``low`` and ``high``, two values to a cell from the left; a gap is ``·``.

    A value at or below ``low`` has the lowest dot: it was measured. In ASCII a cell has the larger of its two.
    """
    values = values[: 2 * width]
    if look.is_ascii:
        return skyline(_larger(values), width, look, low=low, high=high, height=height, role=role)
    levels = [0 if math.isnan(value) else level(value, low, high, DOTS_PER_CELL * height) for value in values.tolist()]
    pairs = [(levels[at], levels[at + 1] if at + 1 < len(levels) else 0) for at in range(0, len(levels), 2)]
    lines: list[list[Piece]] = []
    for floor in reversed(range(height)):
        cells = [_cell(left, right, DOTS_PER_CELL * floor, floor) for left, right in pairs]
        lines.append([("".join(cells), role), (" " * (width - len(cells)), "text")])
    return lines


def _cell(left: int, right: int, below: int, floor: int) -> str:
    if not (left or right):
        return " " if floor else "·"
    dots = sum(_LEFT[: max(min(left - below, DOTS_PER_CELL), 0)]) + sum(
        _RIGHT[: max(min(right - below, DOTS_PER_CELL), 0)]
    )
    return chr(_BRAILLE + dots) if dots else " "


def _larger(values: Floats) -> Floats:
    """Of each two neighbours the larger, NaN where neither is known."""
    padded = np.append(values, np.nan) if len(values) % 2 else values
    found: Floats = np.fmax(padded[::2], padded[1::2])
    return found
