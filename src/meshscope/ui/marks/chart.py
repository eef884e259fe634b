"""Bars over a number line: step time over step number, with some of them marked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

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
    start = number.astype(np.int64) * width // total
    end = np.maximum((number.astype(np.int64) + 1) * width // total, start + 1)
    owner = np.repeat(np.arange(len(number)), end - start)
    column = np.arange(len(owner)) - np.repeat(np.cumsum(end - start) - (end - start), end - start) + start[owner]
    height = np.full(width, math.nan)
    np.fmax.at(height, column, value[owner])
    marked = np.zeros(width, dtype=bool)
    np.logical_or.at(marked, column, is_marked[owner])
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
    levels = _levels(given, top, height)
    runs = _runs(given.is_marked)
    lines = []
    for row in range(height):
        floor = height - 1 - row
        text = label(top) if row == 0 else (label(0.0) if floor == 0 else "")
        pieces: list[Piece] = [(right(clip(text, gutter - 1), gutter - 1) + " ", "quiet")]
        for start, end, is_marked in runs:
            signs = _signs(look, is_marked=is_marked)
            most = 9 if row == 0 else 8
            cells = [signs[min(max(level - 8 * floor, 0), most)] for level in levels[start:end]]
            pieces.append(("".join(cells), marked_role if is_marked else role))
        lines.append(pieces)
    return lines


def _levels(given: Columns, top: float, height: int) -> list[int]:
    """Each column's height in eighths of a cell; 0 for none, one more than a full chart for what goes beyond it."""
    if top <= 0:
        return [0] * len(given.value)
    eighths = np.clip(np.rint(np.nan_to_num(given.value) / top * height * 8), 1, height * 8)
    eighths = np.where(given.value > top, height * 8 + 1, eighths)
    found: list[int] = np.where(np.isnan(given.value), 0, eighths).astype(np.int64).tolist()
    return found


def _runs(is_marked: Bools) -> list[tuple[int, int, bool]]:
    """Stretches of neighbours that are all marked or all not: start, end, which."""
    if not len(is_marked):
        return []
    bounds = [0, *(np.flatnonzero(np.diff(is_marked)) + 1).tolist(), len(is_marked)]
    return [(start, end, bool(is_marked[start])) for start, end in pairwise(bounds)]


def _signs(look: Look, *, is_marked: bool) -> str:
    """The sign for 0 … 8 eighths of a cell, and for a cell that the column goes beyond the top of."""
    if look.is_ascii:
        full = "o" if is_marked else "#"
        return " ..:::" + full * 3 + "^"
    return BLOCKS[:8] + ("▓" if is_marked else "█") + "▲"


def marks(given: Columns, gutter: int, role: str) -> list[Piece]:
    """A line under the columns with a tick below each marked one."""
    ticks = "".join("▴" if mark else " " for mark in given.is_marked.tolist())
    return [(" " * gutter, "text"), (ticks, role)]
