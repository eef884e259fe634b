"""The numbers under a chart: round ones, each where its column begins, and the unit at the end."""

from __future__ import annotations

from meshscope.ui.marks.cells import Piece

_APART = 3
_STEPS = (1, 2, 5)


def across(total: int, width: int, unit: str, *, gutter: int = 0, role: str = "quiet") -> list[Piece]:
    """A line of ``gutter`` blanks and ``width`` cells that stand for 0 … ``total`` − 1, as ``chart.columns`` has them.

    Numbers stand at least three cells apart, and none is cut off; the unit gives way where it finds no room.
    """
    text = [" "] * width
    room = width - len(unit) - 1 if unit and width - len(unit) - 1 > len(str(total)) else width
    by = _by(total, width)
    for number in range(0, total, by):
        label = str(number)
        at = number * width // max(total, 1)
        if at + len(label) > room:
            break
        text[at : at + len(label)] = label
    if room < width:
        text[width - len(unit) :] = unit
    return [(" " * gutter, "text"), ("".join(text), role)]


def _by(total: int, width: int) -> int:
    """The least of 1, 2, 5, 10, … that leaves room between two numbers."""
    power = 1
    while True:
        for step in _STEPS:
            by = step * power
            if by >= total or by * width // total >= len(str(total - 1)) + _APART:
                return by
        power *= 10
