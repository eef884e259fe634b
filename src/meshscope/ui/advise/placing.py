"""How a screen is shared out between the form, the candidates, the bars and what is said below them."""

from __future__ import annotations

from dataclasses import dataclass

_BESIDE_FROM, _TALL, _VERY_TALL = 100, 32, 50
_SIDE = 30
_SIDE_LINES = 8
_FORM_LINES = 2
_TIGHT, _ROOMY = 10, 13
"""Lines that are always there: two at the head, headings, a blank, the bars (four or seven), tabs and keys."""


@dataclass(frozen=True)
class Places:
    """``side`` is the width of the form at the left, 0 where it stands above everything; the rest are heights.

    ``rows`` are the lines of candidates without their headings; ``is_roomy`` gives the bars their intervals.
    """

    side: int
    rows: int
    is_roomy: bool
    view: int


def places(width: int, height: int, candidates: int) -> Places:
    """Candidates get what they need as far as the view keeps a few lines."""
    side = _SIDE if width >= _BESIDE_FROM else 0
    is_roomy = height >= _TALL
    fixed = (0 if side else _FORM_LINES) + (_ROOMY if is_roomy else _TIGHT)
    least = 18 if height >= _VERY_TALL else 11 if is_roomy else 3
    rows = max(min(candidates, height - fixed - least), 1)
    if side:
        rows = max(rows, min(_SIDE_LINES, height - fixed - least))
    return Places(side, rows, is_roomy, max(height - fixed - rows, 0))
