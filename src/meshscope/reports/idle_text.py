"""Idle time and launches in the text report: the rank that idles most, and what it waited for."""

from __future__ import annotations

from meshscope.analysis.idle import UNKNOWN
from meshscope.analysis.idle_shares import ENDS, RankIdle, idle_shares
from meshscope.analysis.launches import SHORT_NS, Launches, launches
from meshscope.reports.columns import wrapped
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ratio

MATERIAL_FRAC = 0.02
MOST_CAUSES = 3
_WHOLE = "over all that was traced"

CAUSES = {
    "data": "the host loads data",
    "sync": "the host synchronizes",
    "allocation": "the host allocates or frees memory",
    "launch": "the host is in launch calls",
    "optimizer": "the host is in the optimizer",
    "operators": "the host is in operators",
    "python": "the host runs what is not recorded, such as Python",
    "wait": "a recorded wait",
    "queued": "the next work is queued and has not started",
    UNKNOWN: "nobody knows, because the launch is not in the trace",
    ENDS: "comes before the first or after the last device work of the step's trace",
}

_BOUND = {
    "launch": "launch-bound: the device waits, never for long, for the host to launch its next work",
    "host": "host-bound: the device waits for the host to launch its next work",
    "input": "input-bound: the device waits for the next batch",
    "sync": "host-bound: the device waits while the host synchronizes",
    "allocation": "host-bound: the device waits while the host allocates or frees memory",
}


def idle_lines(run: Run) -> list[str]:
    """Nothing where devices hardly idle, or where the traces do not say why."""
    lines = []
    known = [one for one in idle_shares(run).ranks if one.causes]
    worst = max(known, key=lambda one: (ratio(one.idle_ns, one.span_ns), -one.rank), default=None)
    if worst is not None and worst.idle_ns >= MATERIAL_FRAC * worst.span_ns:
        lines += wrapped(_idle(worst), hanging="  ")
    found = launches(run)
    if found:
        lines += wrapped(_launches(max(found, key=lambda one: (one.bound_frac, -one.rank))), hanging="  ")
    return lines


def _idle(found: RankIdle) -> str:
    """Of the mean step, as everywhere, where there is one. Shares are of the idle time."""
    causes = sorted(found.causes.items(), key=lambda item: -item[1])[:MOST_CAUSES]
    of = f"its mean step of {duration(found.span_ns)}" if found.steps else f"the {duration(found.span_ns)} {_WHOLE}"
    said = f"idle: rank {found.rank} for {duration(found.idle_ns)} of {of}; of that idle time "
    return said + ", ".join(f"{percent(ratio(ns, found.idle_ns))} {CAUSES[cause]}" for cause, ns in causes)


def _launches(found: Launches) -> str:
    said = f"launches {_WHOLE}: rank {found.rank}, {duration(found.latency.median_ns)} from call to start (median), "
    said += f"{percent(found.empty_frac)} of {counted(found.calls, 'call')} find nothing queued"
    said += f"; {found.short} of {counted(found.kernels, 'kernel')} last less than {duration(SHORT_NS)}"
    if found.linked < found.works:
        said += f"; {found.works - found.linked} of {found.works} pieces of work show no launch"
    if found.bound:
        said += f"; {_BOUND[found.bound]} {percent(found.bound_frac)} of {duration(found.span_ns)}"
    return said
