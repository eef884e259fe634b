"""What costs are shares of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from meshscope.analysis.breakdown import combine, measure, per_step
from meshscope.analysis.parts import per_run
from meshscope.analysis.steps import steps
from meshscope.run import Run
from meshscope.units import counted, duration, ratio


@dataclass(frozen=True)
class Whole:
    """``ns`` (NaN: not known) is how long it takes, ``words`` says what it is."""

    ns: float = math.nan
    words: str = ""

    @property
    def is_known(self) -> bool:
        return self.ns > 0


def usual_step(run: Run) -> Whole:
    """The median step that no profiler touched, past warm-up."""
    median_ns = steps(run).median_ns
    return Whole(median_ns, f"the median step of {duration(median_ns)}") if median_ns > 0 else Whole()


def training(run: Run) -> Whole:
    """All steps of the run, from the first one's beginning to the last one's end."""
    table = run.steps
    ns = int(table.end_ns.max() - table.start_ns.min()) if len(table) else 0
    return Whole(ns, f"the {duration(ns)} of training") if ns > 0 else Whole()


@per_run
def traced_step(run: Run) -> Whole:
    """The mean complete step of the traces, over ranks; the mean rank's windows where no step is complete."""
    parts = [measure(window) for window in run.windows if window.device_kind != "none"]
    if not parts:
        return Whole()
    whole = combine(parts)
    mean = per_step(whole)
    if mean is not None and mean.span_ns:
        return Whole(mean.span_ns, f"the mean profiled step of {duration(mean.span_ns)}")
    ranks = len({window.rank for window in run.windows if window.device_kind != "none"})
    ns = whole.total.span_ns / ranks
    return Whole(ns, f"the {duration(ns)} traced of a rank")


def all_traced(run: Run) -> str:
    """``over all that was traced (3 complete steps)``: of what is no mean step though its finding's cost is."""
    steps = len({step for window in run.windows for step in window.steps})
    of = f" ({counted(steps, 'complete step')})" if steps else ""
    return f"over all that was traced{of}"


def computing_frac(run: Run) -> float:
    """The share of the traced time of all ranks in which they compute; NaN where nothing is traced."""
    parts = [measure(window).total for window in run.windows if window.device_kind != "none"]
    return ratio(sum(part.compute_ns for part in parts), sum(part.span_ns for part in parts))
