"""An answer as a table of plain values: what a panel draws, with nothing rounded and nothing clipped.

A column's name ends in its unit (``_ns``, ``_bytes``, ``_frac``, ``_per_s``, …), as everywhere in meshscope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from meshscope.units import UNKNOWN, duration, percent, printable, rate, size

Value = str | int | float | bool | None

_WRITTEN: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("_bytes_per_s", "", lambda value: f"{size(value)}/s"),
    ("_per_s", "/s", rate),
    ("_bytes", "", size),
    ("_frac", "", percent),
    ("_ns", "", duration),
)


@dataclass(frozen=True)
class Sheet:
    """``rows`` hold a value for each of ``columns``; None is what is not known, and no float is NaN or infinite.

    ``about`` are numbers that belong to no row. ``more`` are further tables by name, for files that can hold several.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Value, ...], ...] = ()
    about: tuple[tuple[str, Value], ...] = ()
    more: tuple[tuple[str, Sheet], ...] = ()

    def only(self, rows: Iterable[tuple[Value, ...]]) -> Sheet:
        """The same columns with some of the rows, and nothing else."""
        return Sheet(self.columns, tuple(rows))


def sheet(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    about: dict[str, Any] | None = None,
    more: dict[str, Sheet] | None = None,
) -> Sheet:
    """A sheet of values as an analysis has them: numpy scalars, NaN, ranges and lists included."""
    return Sheet(
        tuple(columns),
        tuple(tuple(map(value, row)) for row in rows),
        tuple((name, value(found)) for name, found in (about or {}).items()),
        tuple((more or {}).items()),
    )


def value(found: Any) -> Value:
    """One cell: a number that is not finite is not known; several things are one text."""
    if found is None or isinstance(found, str | bool):
        return found
    if isinstance(found, int):
        return int(found)
    if isinstance(found, float):
        return float(found) if math.isfinite(found) else None
    if isinstance(found, Sequence):
        return " ".join(str(one) for one in found)
    return value(found.item())  # a scalar of numpy's


def whole(found: float) -> int | None:
    """Nanoseconds or bytes that were a mean, as ``analyze --json`` writes them; None where not known."""
    return round(found) if math.isfinite(found) else None


def chosen(given: Sheet, *, name: str | None = None, at: int | None = None, rank: int = -1) -> Sheet:
    """The rows of one ``rank``, the row ``at`` a place, or those of a ``name`` (their first column).

    All of them where none of these finds any.
    """
    rows: list[tuple[Value, ...]] = []
    if rank >= 0 and "rank" in given.columns:
        place = given.columns.index("rank")
        rows = [row for row in given.rows if row[place] == rank]
    elif at is not None:
        rows = list(given.rows[at : at + 1])
    elif name is not None:
        rows = [row for row in given.rows if row and row[0] == name]
    return given.only(rows or given.rows)


def spoken(given: Sheet) -> list[list[str]]:
    """The headings, then the rows, as a person reads them: numbers with their units, as on the screen."""
    units = [next(((end, tail, say) for end, tail, say in _WRITTEN if name.endswith(end)), None)
             for name in given.columns]  # fmt: skip
    titles = [
        (name.removesuffix(unit[0]) + unit[1] if unit else name).replace("_", " ")
        for name, unit in zip(given.columns, units, strict=True)
    ]
    rows = [
        [_said(cell, unit[2] if unit else None) for cell, unit in zip(row, units, strict=True)] for row in given.rows
    ]
    return [titles, *rows]


def _said(cell: Value, say: Callable[[float], str] | None) -> str:
    if cell is None:
        return UNKNOWN
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int | float):
        return say(cell) if say else f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return "; ".join(printable(line) for line in cell.splitlines())
