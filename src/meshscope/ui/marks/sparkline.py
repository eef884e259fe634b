"""A series in one line of cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Piece

Floats = npt.NDArray[np.float64]

BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN = " _,-:=+*#"


def binned(values: Sequence[float] | Floats, width: int) -> Floats:
    """At most ``width`` means of equally many neighbours, NaN where a bin holds no number.

    How many go into a bin is a power of two, and bins start at the first value, so a growing series keeps its
    shape: only the last cell changes until the line is full and halves.
    """
    series = np.asarray(values, dtype=np.float64)
    if not len(series) or width <= 0:
        return np.empty(0)
    size = 1
    while math.ceil(len(series) / size) > width:
        size *= 2
    starts = np.arange(0, len(series), size)
    known = ~np.isnan(series)
    counts = np.add.reduceat(known.astype(np.int64), starts)
    sums = np.add.reduceat(np.where(known, series, 0.0), starts)
    means: Floats = np.divide(sums, counts, out=np.full(len(starts), math.nan), where=counts > 0)
    return means


def stretched(values: Sequence[float] | Floats, width: int) -> Floats:
    """``binned``, and where a short series leaves room, each value in 2, 4, 8 or 16 cells."""
    series = binned(values, width)
    times = next((times for times in (16, 8, 4, 2) if len(series) * times <= width), 1)
    return np.repeat(series, times)


def sparkline(
    values: Sequence[float] | Floats, width: int, look: Look, *, low: float, high: float, height: int = 1
) -> list[list[Piece]]:
    """A series over ``width`` cells (see ``stretched``), as :func:`skyline` draws it."""
    return skyline(stretched(values, width), width, look, low=low, high=high, height=height)


def skyline(
    values: Floats, width: int, look: Look, *, low: float, high: float, height: int = 1, role: str = "gauge"
) -> list[list[Piece]]:
    """``height`` lines of bars between ``low`` and ``high``, a cell for each value from the left; a gap is ``·``.

    A value at or below ``low`` is the lowest mark, not a blank: it was measured.
    """
    series = values.tolist()
    signs = PLAIN if look.is_ascii else BLOCKS
    levels = [-1 if math.isnan(value) else level(value, low, high, 8 * height) for value in series]
    runs = [(is_gap, list(group)) for is_gap, group in groupby(levels, key=lambda eighths: eighths < 0)]
    lines: list[list[Piece]] = []
    for floor in reversed(range(height)):
        line = [
            (gap * len(run), "faint")
            if is_gap
            else ("".join([signs[min(max(eighths - 8 * floor, 0), 8)] for eighths in run]), role)
            for gap in ((" " if floor else "." if look.is_ascii else "·"),)
            for is_gap, run in runs
        ]
        lines.append([*line, (" " * (width - len(series)), "text")])
    return lines


def level(value: float, low: float, high: float, levels: int) -> int:
    """The level 1…``levels`` of a value between ``low`` and ``high``."""
    share = (value - low) / (high - low) if high > low else (0.0 if value <= low else 1.0)
    return min(max(math.ceil(share * levels), 1), levels)
