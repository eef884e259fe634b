"""What was read, in words and as a table."""

from __future__ import annotations

from collections.abc import Iterable

from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet

HELP = Help(
    "What was refused and why; the files of the run that is looked at; what was dropped or mended in them, and what "
    "they cannot tell.",
    columns=(
        ("rank", "the rank (or ranks) that the file is of"),
        ("file", "its name"),
        ("events", "entries of the file: traceEvents, or events of an xplane"),
    ),
    states=(
        ("✗", "a file that could not be read, and what to do"),
        ("dropped, mended", "events left out or corrected, with the reason: they are in no number, or in it as mended"),
    ),
    keys=(("pgup pgdn", "scroll; so does the wheel"),),
)


def files(found: Iterable[tuple[str, str, int]], said: Iterable[tuple[str, str]]) -> Sheet:
    """A row per (rank, file, events); what else was said is in ``said``, by how grave it is."""
    return sheet(("rank", "file", "events"), found, more={"said": sheet(("role", "text"), said)})
