"""Horizontal bars: shares stacked in their textures, and single lengths to an eighth of a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Piece
from meshscope.ui.palette import texture

_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def stacked(parts: Sequence[tuple[str, float]], width: int, look: Look) -> list[Piece]:
    """Parts ``(meaning, fraction)`` side by side, each in its texture; fractions of ``width`` cells.

    Ends are rounded, not lengths, so the whole is right to half a cell wherever it is cut, and parts that add up to
    1 fill the bar exactly. What the fractions leave is blank; NaN and negative parts are nothing.
    """
    pieces: list[Piece] = []
    at, total = 0, 0.0
    for meaning, fraction in parts:
        total += fraction if fraction > 0 else 0.0
        end = min(math.floor(total * width + 0.5), width)
        if end > at:
            pieces.append((texture(meaning, look) * (end - at), meaning))
            at = end
    return [*pieces, (" " * (width - at), "text")] if at < width else pieces


def length(fraction: float, width: int, role: str, look: Look) -> list[Piece]:
    """One bar of ``fraction`` of ``width`` cells, to an eighth of a cell (a whole one in ASCII); blank for NaN.

    Anything above zero shows at least its smallest mark: a little is not nothing.
    """
    if math.isnan(fraction) or fraction <= 0 or width <= 0:
        return [(" " * max(width, 0), "text")]
    if look.is_ascii:
        whole, part = min(max(round(fraction * width), 1), width), ""
    else:
        eighths = min(max(round(fraction * width * 8), 1), width * 8)
        whole, part = eighths // 8, _EIGHTHS[eighths % 8]
    bar = ("#" if look.is_ascii else "█") * whole + part
    return [(bar, role), (" " * (width - len(bar)), "text")]
