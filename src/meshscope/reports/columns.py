"""Plain text in columns, 80 characters wide or as narrow as the terminal is, for terminals that can do no more."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

WIDTH = 80
NARROWEST = 40
"""Below this, lines are left for the terminal to break."""

_room: ContextVar[int] = ContextVar("room", default=WIDTH)

_ASCII = str.maketrans({
    "–": "-", "—": "-", "×": "x", "±": "+-", "µ": "u", "…": "...", "·": "|", "≥": ">=", "≤": "<=", "σ": "sigma",
    "’": "'", "“": '"', "”": '"', " ": " ", "\u00a0": " ", "\u202f": " ", "�": "?", "†": "*", "−": "-", "▸": ">",
    "°": "",
})  # fmt: skip


def room(most: int = WIDTH) -> int:
    """How wide lines of text may be: as wide as the terminal, 80 characters elsewhere, and never more than ``most``."""
    return min(_room.get(), most)


@contextmanager
def narrowed(columns: int | None) -> Iterator[None]:
    """Text is wrapped for a terminal of so many columns (None: it goes elsewhere)."""
    token = _room.set(WIDTH if columns is None else max(columns, NARROWEST))
    try:
        yield
    finally:
        _room.reset(token)


def table(heading: Sequence[str], rows: Sequence[Sequence[str]], *, indent: str = "  ") -> list[str]:
    """Lines of a table: the first column to the left, the others to the right, two spaces between."""
    widths = [max(len(row[at]) for row in (heading, *rows)) for at in range(len(heading))]
    return [indent + _row(row, widths) for row in (heading, *rows)]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join((first.strip().ljust(widths[0]), *others)).rstrip()


def wrapped(text: str, *, indent: str = "  ", hanging: str = "") -> list[str]:
    """Text in lines of at most ``room()`` characters."""
    return textwrap.wrap(text, room(), initial_indent=indent, subsequent_indent=indent + hanging) or [""]


def encodable(text: str, encoding: str) -> str:
    """The text itself where ``encoding`` has all its characters, else its nearest ASCII."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return text


def shortened(name: str, width: int = 34) -> str:
    """A kernel's or a module's name, cut where it is longer than a line has room for."""
    return name if len(name) <= width else name[: width - 1] + "…"
