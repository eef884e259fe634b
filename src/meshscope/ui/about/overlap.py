"""Collectives by kind, in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.overlap import CollectiveOverlap
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet
from meshscope.units import ranges

HELP = Help(
    "One line per kind of collective, the most exposed first: means over the complete profiled steps and ranks that "
    "stand below the table.",
    columns=(
        ("collective", "its kind, whatever library ran it"),
        ("busy ms", "ms of a step in which it was under way, waiting for peers included"),
        ("hidden", "share of busy that lies beside compute, and so costs nothing"),
        ("wait ms", "ms in which it only waits for peers, hidden or not; calls at once count once"),
        ("rendezvous ms", "instead of it where XLA records them: ms in which it is in XLA's rendezvous of ranks"),
        ("count", "calls in all profiled steps of all ranks"),
        ("size", "bytes of a step and rank in the mean, as the traces tell them"),
    ),
    states=(
        ("–", "the trace does not tell; a column that no kind can fill is left out"),
        ("… n more", "kinds that find no room: m shows them"),
    ),
    keys=(("e", "explain: a number's formula and its spans"),),
)

_COLUMNS = ("collective", "count", "ranks", "steps", "busy_ns", "hidden_ns", "exposed_ns", "wait_ns", "size_bytes")


def kinds(found: Sequence[CollectiveOverlap]) -> Sheet:
    """A row per kind; times and ``size_bytes`` are means per step and rank, ``count`` is over all of them."""
    rows = [
        [one.name, one.count, ranges(one.ranks), one.steps, one.busy_ns, one.hidden_ns, one.exposed_ns, one.wait_ns,
         one.size_bytes]
        for one in found
    ]  # fmt: skip
    return sheet(_COLUMNS, rows)
