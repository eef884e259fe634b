"""A sheet as CSV, as JSON and as text for the clipboard, and the name of the file that it goes to."""

from __future__ import annotations

import csv
import io
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from meshscope.ui import clipboard, saving
from meshscope.ui.sheet import Sheet, Value, spoken
from meshscope.units import printable

FORMATS = (
    ("c", "CSV: the rows, for a spreadsheet or pandas", "csv"),
    ("j", "JSON: the rows, and what they stand on", "json"),
)
FORMAT = 1
_LONGEST_NAME = 48
_FORMULA = ("=", "+", "-", "@", "\t")


@dataclass(frozen=True)
class Subject:
    """What a sheet is of: a ``panel`` by its name and title, ``of`` a run ("" for all).

    ``stands_on`` names steps or readings, ``caveat`` says what the numbers do not stand on yet. ``mark`` is "" for what
    ran; else it is part of the file's name, which is all that a table of plain rows says of itself.
    """

    panel: str
    title: str
    of: str = ""
    stands_on: str = ""
    caveat: str = ""
    mark: str = ""


def as_csv(given: Sheet) -> str:
    """The rows under their headings; what is not known is empty. Text that a spreadsheet would run is quoted with '."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(given.columns)
    writer.writerows([_cell(cell) for cell in row] for row in given.rows)
    return out.getvalue()


def _cell(cell: Value) -> Value:
    if isinstance(cell, bool):
        return str(cell).lower()
    if not isinstance(cell, str):
        return "" if cell is None else cell
    text = _clean(cell)
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_json(given: Sheet, subject: Subject) -> str:
    """One object: what the rows are of, and each row by its columns; what is not known is absent."""
    said: dict[str, Any] = {
        "format": FORMAT,
        "panel": subject.panel,
        "title": subject.title,
        "of": _clean(subject.of) or None,
        "stands_on": _clean(subject.stands_on) or None,
        "caveat": subject.caveat or None,
        "about": _known(given.about),
        **_rows(given),
    }
    said |= {name: _rows(more) for name, more in given.more}
    return msgspec.json.format(msgspec.json.encode(said), indent=1).decode() + "\n"


def _rows(given: Sheet) -> dict[str, Any]:
    rows = [_known(tuple(zip(given.columns, row, strict=True))) for row in given.rows]
    return {"columns": list(given.columns), "rows": rows}


def _known(pairs: Sequence[tuple[str, Value]]) -> dict[str, Value]:
    return {name: _clean(value) if isinstance(value, str) else value for name, value in pairs if value is not None}


def _clean(text: str) -> str:
    """Lines stay lines; nothing else in them steers whatever shows the file."""
    return "\n".join(printable(line) for line in text.splitlines())


def as_tabs(given: Sheet) -> list[str]:
    """Lines of cells with tabs between them, the headings first, as a person reads them."""
    return ["\t".join(line) for line in spoken(given)]


def file_name(subject: Subject, kind: str, now_s: float | None = None) -> str:
    """``meshscope-split-ddp-20260131-120000.csv``."""
    at = time.strftime("%Y%m%d-%H%M%S", time.localtime(now_s))
    whose = subject.of if not subject.mark or subject.mark in subject.of else f"{subject.of or 'all'} {subject.mark}"
    of = re.sub(r"[^A-Za-z0-9._-]+", "-", whose).strip("-.")[:_LONGEST_NAME] or "all"
    return f"meshscope-{subject.panel}-{of}-{at}.{kind}"


def exported(given: Sheet, subject: Subject, kind: str) -> str:
    """Write a sheet to a file of its own; the line that says where it is, or why it could not be written."""
    text = as_csv(given) if kind == "csv" else as_json(given, subject)
    try:
        saved = saving.told(saving.save(file_name(subject, kind, time.time()), text))
    except saving.SavingError as error:
        return printable(error.message)
    return printable(f"{saved}: {subject.caveat}" if subject.caveat else saved)


def copied(rows: Sheet) -> tuple[str, str]:
    """Rows as text for the clipboard, and what is left to say of that: what found no room, and what tmux needs."""
    lines = as_tabs(rows)
    tmux = f"; {clipboard.TMUX}" if os.environ.get("TMUX") else ""
    return "\n".join(lines), f"{clipboard.left_out(lines)}{tmux}."
