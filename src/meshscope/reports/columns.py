"""Plain text in columns, 80 characters wide, for terminals that can do no more."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

WIDTH = 80

_ASCII = str.maketrans({
    "–": "-", "—": "-", "×": "x", "±": "+-", "µ": "u", "…": "...", "·": "|", "≥": ">=", "≤": "<=", "σ": "sigma",
    "’": "'", "“": '"', "”": '"', " ": " ", "\u00a0": " ", "\u202f": " ", "�": "?", "†": "*", "−": "-", "▸": ">",
})  # fmt: skip


def table(heading: Sequence[str], rows: Sequence[Sequence[str]], *, indent: str = "  ") -> list[str]:
    """Lines of a table: the first column to the left, the others to the right, two spaces between."""
    widths = [max(len(row[at]) for row in (heading, *rows)) for at in range(len(heading))]
    return [indent + _row(row, widths) for row in (heading, *rows)]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join((first.strip().ljust(widths[0]), *others)).rstrip()


def wrapped(text: str, *, indent: str = "  ", hanging: str = "") -> list[str]:
    """Text in lines of at most 80 characters."""
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + hanging) or [""]


def encodable(text: str, encoding: str) -> str:
    """The text itself where ``encoding`` has all its characters, else its nearest ASCII."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return text
