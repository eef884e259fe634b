"""Findings, in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.findings import Finding
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet, whole
from meshscope.units import ranges

HELP = Help(
    "Pitfalls that this run shows: what makes it wrong first (✗), then by cost. Below the list, of the chosen one: "
    "what its share is of, what shows it, what to do, and lines to paste.",
    columns=(
        ("finding", "its name"),
        ("cost", "time that it costs in one step"),
        (
            "share",
            "the cost as a share of what is said first below the list, whose length it has beside it where they differ",
        ),
        ("rank", "whom it is about"),
    ),
    states=(
        ("–", "it costs no time that can be told"),
        (
            "None of the pitfalls",
            "of what could be judged; g tells what that was, and what could not be and why",
        ),
        ("Nothing could be judged", "what the rules need is not there: no finding means nothing then"),
    ),
    keys=(
        ("↑ ↓", "choose one"),
        ("g", "what was looked for, rule by rule, and back"),
        ("t", "the timeline, where the chosen one shows"),
        ("y", "copy it, with its fix"),
    ),
)

_COLUMNS = ("code", "title", "ranks", "is_grave", "cost_ns", "cost_frac", "of", "of_ns", "evidence", "advice", "fix")


def pitfalls(found: Sequence[Finding]) -> Sheet:
    """A row per finding, in the order of the screen; evidence and fix may have several lines."""
    rows = [
        [one.code, one.title, ranges(one.ranks) or None, one.is_grave, whole(one.cost_ns) if one.has_cost else None,
         one.cost_frac, one.of or None, whole(one.of_ns) if one.of_ns > 0 else None,
         "\n".join(one.evidence), one.advice, one.fix or None]
        for one in found
    ]  # fmt: skip
    return sheet(_COLUMNS, rows)
