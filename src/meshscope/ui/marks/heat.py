"""Shares step by step as a strip of cells, the darker the more: each level has a character and a colour of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from meshscope.analysis.rank_waits import Floats, binned, per_cell
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Piece
from meshscope.ui.palette import heat

_MOST_PER_STEP = 6


def heat_strip(frac: Floats, width: int, levels: Sequence[float], look: Look) -> list[Piece]:
    """The level of each step; the largest of several where they share a cell, and blank where none is known.

    A value is of the level whose bound it reaches: ``levels`` are those of levels 1, 2, ….
    """
    each = _cells_per_step(len(frac), width)
    found = [-1 if math.isnan(value) else sum(value >= bound for bound in levels) for value in binned(frac, width)]
    return [
        (" " * count if level < 0 else heat(level, look) * count, "text" if level < 0 else f"heat{level}")
        for level, run in groupby(found)
        if (count := each * len(list(run)))
    ]


def heat_scale(levels: Sequence[float], look: Look) -> list[Piece]:
    """Which character stands for which level, in percent."""
    pieces: list[Piece] = []
    for level, bound in enumerate(levels, start=1):
        pieces += [(" " + heat(level, look), f"heat{level}"), (f" {bound * 100:.0f}", "quiet")]
    return pieces


def heat_heading(steps: Sequence[int], width: int) -> str:
    """The steps of a strip's first and last cell, above them."""
    first, last = steps[0], steps[-1]
    if len(steps) == 1:
        return f"step {first}" if width >= len(f"step {first}") else str(first)
    used = _cells_per_step(len(steps), width) * math.ceil(len(steps) / per_cell(len(steps), width))
    ends = min(max(used, len(f"{first}–{last}")), width)
    gap = ends - len(f"step {first}") - len(str(last))
    return f"step {first}{' ' * gap}{last}" if gap > 0 else f"{first}–{last}"


def _cells_per_step(steps: int, width: int) -> int:
    """How many cells a step takes where there is room."""
    return min(max(width // max(steps, 1), 1), _MOST_PER_STEP)
