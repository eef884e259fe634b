"""Who comes late and who waits, in words and as a table."""

from __future__ import annotations

import math

from meshscope.analysis.rank_waits import RankWaits
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet

HELP = Help(
    "Ranks × profiled steps: the darker a cell, the later that rank came to the step's collectives. The same "
    "collective is matched over ranks, and ranks' clocks are aligned on its ends.",
    columns=(
        ("rank", "the worst; 1–9, or 1…9 (5) without four that have rows: ranks without room, figures least–most"),
        ("step", "first to last step of the strip; in all: no step is marked"),
        ("wait, sum ms", "ms of a step from when it came to when the last rank did, added up over calls"),
        ("", "by matching ranks: what XLA records of its rendezvous is rendezvous ms, and may differ"),
        ("transfer ms", "ms of a step that remain once everybody has arrived"),
        ("holds up ms", "ms of a step for which it holds up another rank"),
        ("last", "calls it came last to / calls that were matched, those outside steps too"),
        ("late by", "from which share of a step on a character is used; also in time"),
    ),
    states=(
        ("Cannot say", "why nothing can be matched over ranks"),
        ("ends agree to", "how far the aligned ends of one collective lie apart at most: finer is not known"),
    ),
)

_COLUMNS = ("rank", "wait_ns", "transfer_ns", "held_ns", "last", "calls")


def ranks(found: RankWaits) -> Sheet:
    """A row per rank, of a step in the mean (of all where none is marked); each step's lateness is in ``lateness``."""
    rows = [[one.rank, one.wait_ns, one.transfer_ns, one.held_ns, one.last, one.calls] for one in found.rows]
    late = [
        (one.rank, step if step >= 0 else None, frac)
        for one in found.rows
        for step, frac in zip(found.steps, one.late_frac.tolist(), strict=True)
    ]
    about = {
        "step_ns": None if math.isnan(found.step_ns) else found.step_ns,
        "matched": found.matched,
        "spans": found.spans,
        "residual_ns": found.residual_ns,
        "pattern": found.words or None,
        "cannot_say": found.why or None,
    }
    return sheet(_COLUMNS, rows, about=about, more={"lateness": sheet(("rank", "step", "late_frac"), late)})
