"""The search for unused parameters: DDP goes through the graph of every pass to find parameters without a gradient.

Fires where ``find_unused_parameters=True`` takes a fiftieth of the traced step on the host. What the step loses by it
is not told: a host that is ahead of its device loses nothing, one that is behind all of it. Whether any parameter is
unused the trace does not say; DDP itself warns once where none was.
"""

from __future__ import annotations

from meshscope.analysis.ddp import ddp, searches
from meshscope.analysis.findings.rule import Finding, Rule, per_step
from meshscope.analysis.findings.whole import all_traced
from meshscope.run import Run
from meshscope.units import counted, duration, percent

LEAST_FRAC = 1 / 50

_FIX = """# where every parameter has a gradient in every step, none is unused:
DistributedDataParallel(model, find_unused_parameters=False)
# where the same ones are unused in every step, look for them once:
DistributedDataParallel(model, static_graph=True)"""


def unused_search(run: Run) -> tuple[Finding, ...]:
    found = ddp(run)
    if found is None or not found.searches:
        return ()
    windows = [window for window in run.windows if window.device_kind != "none"]
    host = per_step({window: searches(window)[1] for window in windows}, run)
    if not host.cost_frac >= LEAST_FRAC:
        return ()
    return (
        Finding(
            code=FINDING.code,
            title="DDP searches for unused parameters",
            evidence=(
                f"{counted(found.searches, 'search', 'searches')} for unused parameters on all ranks "
                f"{all_traced(run)}; their host time is {duration(host.cost_ns)}, {percent(host.cost_frac)} of "
                f"{host.of}",
            ),
            advice="Turn the search off where every parameter takes part in every step. Each pass also reduces a map "
            "of what was used.",
            fix=_FIX,
        ),
    )


FINDING = Rule("unused-search", unused_search)
