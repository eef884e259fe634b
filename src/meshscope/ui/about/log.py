"""The log, in words and as a table."""

from __future__ import annotations

from collections.abc import Iterable

from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet

HELP = Help(
    "What happened, oldest first: phases, traces, compilations, warnings, and how ranks ended.",
    columns=(
        ("m:ss", "minutes and seconds since the run's start"),
        ("✗ !", "an error, a warning"),
    ),
    states=(("steps", "are not told here: they have a panel of their own"),),
    keys=(("pgup pgdn", "scroll; so does the wheel"),),
)


def lines(found: Iterable[tuple[int, str, str]]) -> Sheet:
    """A row per (time, level, text); the time is since the recording's start."""
    return sheet(("t_ns", "level", "text"), found)
