"""Idle time and launches, in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.idle_shares import GROUPS, RankIdle
from meshscope.ui.panel import Help
from meshscope.ui.sheet import Sheet, sheet
from meshscope.units import ratio

HELP = Help(
    "One row per rank, in its mean complete step (all that was traced where none is): how long the device is idle, and "
    "what it waits for. Right of the line: time in which only communication or copies run.",
    columns=(
        ("rank", "in order; of many the most idle come first"),
        ("why", "idle time by what is waited for, all rows to one scale (why; most idle first)"),
        ("idle ms", "ms of a step in which the device runs nothing"),
        ("of step", "idle time as a share of the step (share: of what was traced)"),
        (
            "launch",
            "median time from a launch to its kernel's start, in the unit beside it; p95: of 95 % no longer",
        ),
        ("queued", "launched kernels that have not started yet, the median at a launch"),
        ("<", "compute kernels that last less, as a share of all of them"),
        ("cause", "of the chosen rank: ms, and as a share of its idle time"),
    ),
    states=(("Cannot say why", "launches are not in the trace, or it is of a CPU"),),
    keys=(("↑ ↓", "choose a rank"),),
)

_COLUMNS = ("rank", "steps", "span_ns", "idle_ns", "idle_frac", *(f"{group}_ns" for group in GROUPS), "gaps",
            "launch_median_ns", "launch_p95_ns", "queue_median", "short_frac", "cannot_say")  # fmt: skip


def ranks(found: Sequence[RankIdle]) -> Sheet:
    """A row per rank; single causes, and what runs beside nothing that computes, are in ``causes``."""
    causes = [
        (one.rank, kind, name, ns)
        for one in found
        for kind, told in (("idle", one.causes), ("beside", one.beside))
        for name, ns in told.items()
    ]
    more = {"causes": sheet(("rank", "time", "cause", "cause_ns"), causes)}
    return sheet(_COLUMNS, map(_row, found), more=more)


def _row(one: RankIdle) -> list[object]:
    fed = one.launches
    groups = [None if one.why else one.of(group) for group in GROUPS]
    launched = [None] * 4 if fed is None else [
        fed.latency.median_ns, fed.latency.p95_ns, fed.depth_median, fed.short / fed.kernels if fed.kernels else None,
    ]  # fmt: skip
    share = ratio(one.idle_ns, one.span_ns)
    return [one.rank, one.steps, one.span_ns, one.idle_ns, share, *groups, one.gaps, *launched, one.why or None]
