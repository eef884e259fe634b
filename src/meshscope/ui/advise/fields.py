"""The question on the advise screen: its fields in a column beside the candidates, or on two lines above them."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.ui.advise.form import AUTO, FIELDS, Form
from meshscope.ui.look import Look
from meshscope.ui.marks.cells import Line, Piece, clip, filled, left
from meshscope.units import printable

MARGIN = 1
_LABEL = 10
_LINES = (FIELDS[:2], FIELDS[2:])
_USUAL = {"sequence": "as the model", "batch": "as usual", "precision": "each its usual"}

Place = tuple[int, int, int]
"""A line, the first cell on it, and the cell behind the last."""


def _shown(form: Form, field: str) -> tuple[str, str]:
    """A field's text and its role; what is left to the program stands there in grey."""
    text = getattr(form, field)
    return (printable(text), "strong" if form.at == field else "text") if text else (_USUAL.get(field, AUTO), "quiet")


def _field(form: Form, field: str, room: int, look: Look) -> list[Piece]:
    text, role = _shown(form, field)
    if form.at != field:
        return [(clip(text, room), role)]
    caret = "_" if look.is_ascii else "█"
    kept = text if len(text) < room - 1 else "…" + text[-(room - 2) :]
    typed = getattr(form, field)
    return [(kept if typed else "", "strong"), (caret, "accent"), ("" if typed else f" {kept}"[:room], role)]


def beside(form: Form, width: int, height: int, look: Look) -> list[Line]:
    """A column of ``height`` lines."""
    lines: list[Line] = [[("what is asked", "strong"), ("   tab", "key"), (" changes it", "quiet")]]
    for field in FIELDS:
        is_here = form.at == field
        lines.append(
            [
                ("▸ " if is_here else "  ", "accent"),
                (left(field, _LABEL), "strong" if is_here else "quiet"),
                *_field(form, field, width - _LABEL - 2, look),
            ]
        )
    return [*lines, *([[]] * (height - len(lines)))][:height]


def above(form: Form, width: int, look: Look) -> list[Line]:
    """The fields on two lines, where there is no room for a column of them."""
    lines: list[Line] = []
    for group in _LINES:
        line: list[Piece] = []
        for field in group:
            is_here = form.at == field
            line += [("▸" if is_here else " ", "accent"), (f"{field} ", "strong" if is_here else "quiet")]
            line += [
                *filled(_field(form, field, _above_room(group, width, field), look), _above_room(group, width, field))
            ]
        lines.append(line)
    return lines


def _above_room(group: Sequence[str], width: int, field: str) -> int:
    return max(width // len(group) - len(field) - 3, 4)


def beside_places(width: int, first: int) -> dict[str, Place]:
    """Where each field is, the first line of the column being ``first``."""
    return {field: (first + 1 + at, MARGIN, MARGIN + width) for at, field in enumerate(FIELDS)}


def above_places(width: int, first: int) -> dict[str, Place]:
    """Where each field is, the first of the two lines being ``first``."""
    found = {}
    for line, group in enumerate(_LINES):
        at = MARGIN
        for field in group:
            end = at + len(field) + 2 + _above_room(group, width, field)
            found[field] = (first + line, at, end)
            at = end
    return found
