"""What a device that waits for its host costs: counted in complete steps, else in what was traced."""

from __future__ import annotations

from meshscope.analysis.findings.rule import Cost, of_traced, part
from meshscope.analysis.findings.whole import traced_step
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.launches import BOUND_FRAC, Launches, launches
from meshscope.run import Run
from meshscope.units import duration


def bound_by(run: Run, *names: str) -> tuple[Launches, ...]:
    """The ranks that are bound by one of these for a tenth of their steps, those that lose most first."""
    found = [one for one in launches(run) if one.bound in names and cost(one, run).cost_frac >= BOUND_FRAC]
    return tuple(sorted(found, key=lambda one: (-cost(one, run).cost_frac, one.rank)))


def cost(one: Launches, run: Run) -> Cost:
    """In the rank's mean complete step; of its windows where it has none."""
    if not one.steps:
        return of_traced(one.bound_ns, one.span_ns)
    return part(one.step_bound_ns / one.steps, traced_step(run))


def words(one: Launches, run: Run) -> str:
    found = cost(one, run)
    return f"{ranks_words([one.rank])}: its device is idle for {duration(found.cost_ns)} of {found.of}"
