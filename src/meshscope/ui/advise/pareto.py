"""Time against memory: a dot for every candidate that was computed, and signs for those that none beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meshscope.advisor.ranking import Ranked
from meshscope.ui.advise.answer import Answer, name
from meshscope.ui.advise.state import State
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, clip, cut, right
from meshscope.units import NS_PER_S, milliseconds, printable

_GB = 1e9
_GUTTER = 7
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille cell by column, from the top."""

_LEAST_WIDTH, _LEAST_HEIGHT = 24, 6


@dataclass(frozen=True)
class _Field:
    """``left`` to ``right`` seconds over ``width`` cells, ``bottom`` to ``top`` bytes over ``height``."""

    left: float
    right: float
    bottom: float
    top: float
    width: int
    height: int

    def dot(self, x: float, y: float) -> tuple[int, int]:
        """Column and row of a dot, from the upper left; two dots across a cell and four down."""
        across = (x - self.left) / ((self.right - self.left) or 1.0)
        down = (self.top - y) / ((self.top - self.bottom) or 1.0)
        return (
            min(max(round(across * (2 * self.width - 1)), 0), 2 * self.width - 1),
            min(max(round(down * (4 * self.height - 1)), 0), 4 * self.height - 1),
        )


def plot(answer: Answer, state: State, width: int, height: int, look: Look) -> list[Line]:
    """As many lines as ``height``; a sentence where there is nothing to draw, or no room for it."""
    points = [row for row in answer.advice.every if row.time is not None]
    if not points:
        return [[(clip("No candidate that may fit has a predicted time to set against memory.", width), "quiet")]]
    if width < _LEAST_WIDTH or height < _LEAST_HEIGHT:
        return _listed(answer, width)[:height]
    field = _field(points, width - _GUTTER, height - 2)
    cells = _dots(points, field, look)
    limit_row = _limit(points, field, cells, look)
    _signs(answer, state, field, cells, look)
    lines: list[Line] = [
        [(right(_label(field, row, limit_row), _GUTTER - 1), "quiet"), (" ", "text"), *line]
        for row, line in enumerate(cells)
    ]
    return [*lines, _axis(field), cut(_key(answer, state, look), width)]


def _field(points: Sequence[Ranked], width: int, height: int) -> _Field:
    times = [row.step_s for row in points]
    held = [row.memory.used.value for row in points]
    limit = points[0].memory.limit_bytes
    return _Field(min(times), max(times), min(held), max(*held, limit), width, height)


def _dots(points: Sequence[Ranked], field: _Field, look: Look) -> list[list[Piece]]:
    bits = [[0] * field.width for _ in range(field.height)]
    for row in points:
        across, down = field.dot(row.step_s, row.memory.used.value)
        bits[down // 4][across // 2] |= _DOTS[across % 2][down % 4]
    return [[_cell(value, look) for value in line] for line in bits]


def _cell(bits: int, look: Look) -> Piece:
    if not bits:
        return " ", "text"
    return ("." if look.is_ascii else chr(0x2800 + bits)), "gauge"


def _limit(points: Sequence[Ranked], field: _Field, cells: list[list[Piece]], look: Look) -> int:
    """The line of the device's memory, where it is inside; its row."""
    row = field.dot(field.left, points[0].memory.limit_bytes)[1] // 4
    sign = "-" if look.is_ascii else "─"
    cells[row] = [(sign, "warn") if text == " " else (text, role) for text, role in cells[row]]
    return row


def _signs(answer: Answer, state: State, field: _Field, cells: list[list[Piece]], look: Look) -> None:
    """The candidates of the front, and over them the one that is chosen."""
    for row in answer.front:
        across, down = field.dot(row.step_s, row.memory.used.value)
        cells[down // 4][across // 2] = ("o" if look.is_ascii else "◆", "good")
    here = _here(answer, state)
    if here is not None and here.time is not None:
        across, down = field.dot(here.step_s, here.memory.used.value)
        cells[down // 4][across // 2] = ("@" if look.is_ascii else "●", "accent")


def _here(answer: Answer, state: State) -> Ranked | None:
    return answer.rows[state.chosen] if state.chosen < len(answer.rows) else None


def _label(field: _Field, row: int, limit_row: int) -> str:
    if row == limit_row:
        return "limit"
    if row == 0:
        return f"{field.top / _GB:.3g}"
    return f"{field.bottom / _GB:.3g}" if row == field.height - 1 else ("GB" if row == field.height // 2 else "")


def _axis(field: _Field) -> Line:
    first = milliseconds(field.left * NS_PER_S)
    last = f"{milliseconds(field.right * NS_PER_S)} ms a step"
    gap = field.width - len(first) - len(last)
    return [(" " * _GUTTER, "text"), (first + " " * max(gap, 1) + last, "quiet")]


def _key(answer: Answer, state: State, look: Look) -> Line:
    here = _here(answer, state)
    signs = ("@", "o", ".") if look.is_ascii else ("●", "◆", "⡀")
    shown = printable(name(here)) if here is not None else "none"
    return [
        (" " * _GUTTER, "text"),
        (signs[0], "accent"), (f" {clip(shown, 24)}   ", "text"),
        (signs[1], "good"), (" none beats it in both   ", "quiet"),
        (signs[2], "gauge"), (" other settings", "quiet"),
    ]  # fmt: skip


def _listed(answer: Answer, width: int) -> list[Line]:
    """The front in words, where a picture finds no room."""
    said = [
        f"{printable(name(row))}: {milliseconds(row.step_s * NS_PER_S)} ms, {row.memory.used.value / _GB:.3g} GB"
        for row in answer.front
    ]
    return [[("None beats these in both time and memory:", "quiet")], *([(clip(text, width), "text")] for text in said)]
