"""Which share of the time of each collective, by the name of its spans, lies beside no compute of its rank."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from meshscope.analysis.parts import per_run, per_window
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import ratio


@per_window
def measure(window: Window) -> dict[str, tuple[int, int]]:
    """By name: ns in which it runs, and ns of those in which nothing computes. Calls at once count once."""
    spans = window.spans
    mine = spans.kind == Kind.COLLECTIVE
    compute = spans.busy(Kind.COMPUTE)
    found = {}
    for number in np.unique(spans.name[mine]).tolist():
        rows = mine & (spans.name == number)
        busy = union(spans.start_ns[rows], spans.end_ns[rows])
        found[spans.names[number] if number >= 0 else ""] = (busy.total_ns, (busy - compute).total_ns)
    return found


@per_run
def exposed_fracs(run: Run) -> dict[str, float]:
    """Over all windows; NaN for what takes no time."""
    total: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for window in run.windows:
        for name, (busy_ns, exposed_ns) in measure(window).items():
            total[name][0] += busy_ns
            total[name][1] += exposed_ns
    return {name: ratio(exposed_ns, busy_ns) for name, (busy_ns, exposed_ns) in total.items()}
