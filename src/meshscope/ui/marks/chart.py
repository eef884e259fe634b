"""Bars over a number line: step time over step number, with some of them marked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Piece, clip, right
from meshscope.ui.marks.sparkline import BLOCKS

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Columns:
    """What stands in each cell column: a height, whether it is marked, and whether it goes beyond the top."""

    value: Floats
    is_marked: Bools


def columns(number: npt.NDArray[np.int32], value: Floats, is_marked: Bools, *, planned: int, width: int) -> Columns:
    """Values by number over ``width`` columns that stand for 0 … ``planned`` − 1 (or as many as there are).

    Where several share a column the largest is kept (a slow step must not be averaged away); where there is room
    each gets several columns. A column without a value is NaN. Places depend on ``planned`` only, so they stay.
    """
    last = int(number.max()) + 1 if len(number) else 0
    total = max(planned, last, 1)
    height = np.full(width, math.nan)
    marked = np.zeros(width, dtype=bool)
    for at, size, mark in zip(number.tolist(), value.tolist(), is_marked.tolist(), strict=True):
        start = at * width // total
        end = max((at + 1) * width // total, start + 1)
        height[start:end] = np.fmax(height[start:end], size)
        marked[start:end] |= mark
    return Columns(height, marked)


def area(
    given: Columns,
    height: int,
    look: Look,
    *,
    top: float,
    label: Callable[[float], str],
    gutter: int,
    role: str,
    marked_role: str,
) -> list[list[Piece]]:
    """``height`` lines of bars that stand on zero and reach ``top`` at most, with ``label``s at both ends.

    What is above the top ends in ``▲``. Marked columns are in ``marked_role`` and half filled.
    """
    lines = []
    for row in range(height):
        floor = height - 1 - row
        text = label(top) if row == 0 else (label(0.0) if floor == 0 else "")
        pieces: list[Piece] = [(right(clip(text, gutter - 1), gutter - 1) + " ", "quiet")]
        for value, mark in zip(given.value.tolist(), given.is_marked.tolist(), strict=True):
            pieces.append(_cell(value, top, height, floor, look, marked_role if mark else role, is_marked=mark))
        lines.append(pieces)
    return lines


def _cell(value: float, top: float, height: int, floor: int, look: Look, role: str, *, is_marked: bool) -> Piece:
    if math.isnan(value) or top <= 0:
        return " ", "text"
    if value > top and floor == height - 1:
        return "▲", role
    eighths = min(max(round(value / top * height * 8), 1), height * 8) - floor * 8
    if eighths <= 0:
        return " ", "text"
    if look.is_ascii:
        full = "o" if is_marked else "#"
        return (full if eighths >= 6 else ":" if eighths >= 3 else "."), role
    if eighths >= 8:
        return ("▓" if is_marked else "█"), role
    return BLOCKS[eighths], role


def marks(given: Columns, gutter: int, role: str) -> list[Piece]:
    """A line under the columns with a tick below each marked one."""
    ticks = "".join("▴" if mark else " " for mark in given.is_marked.tolist())
    return [(" " * gutter, "text"), (ticks, role)]
