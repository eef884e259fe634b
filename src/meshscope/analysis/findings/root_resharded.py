"""The root gathered again: FSDP frees the outermost module's parameters after its forward pass, though backward begins
with them.

Fires where all-gathers of the root in backward passes are exposed for a fiftieth of the traced step. FSDP2 keeps its
root by default; who shards it with ``reshard_after_forward=True`` gives time for memory. Waiting for a late rank, where
it is known, is left out.
"""

from __future__ import annotations

import numpy as np

from meshscope.analysis.exposure import waited
from meshscope.analysis.findings.rule import Finding, Rule, per_step
from meshscope.analysis.findings.whole import all_traced
from meshscope.analysis.fsdp import ROOT, fsdp, moved
from meshscope.analysis.waiting import WindowWaits, waiting
from meshscope.intervals import EMPTY, Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import counted, duration, percent

LEAST_FRAC = 1 / 50

_FIX = """for block in blocks:
    torch.distributed.fsdp.fully_shard(block)
torch.distributed.fsdp.fully_shard(model, reshard_after_forward=False)"""


def root_resharded(run: Run) -> tuple[Finding, ...]:
    found = fsdp(run)
    if found is None or not found.root_again:
        return ()
    waits = waiting(run).windows
    lost = {window: _lost(window, waits.get(window)) for window in run.windows if window.device_kind != "none"}
    cost = per_step(lost, run)
    if not cost.cost_frac >= LEAST_FRAC:
        return ()
    return (
        Finding(
            code=FINDING.code,
            title="FSDP gathers its root twice",
            **vars(cost),
            evidence=(
                f"{counted(found.root_again, 'all-gather')} of the root in backward passes of all ranks "
                f"{all_traced(run)}; their exposed time is {duration(cost.cost_ns)}, {percent(cost.cost_frac)} of "
                f"{cost.of}",
            ),
            advice="The root's parameters are needed first in the backward pass: keep them over the forward pass. It "
            "takes the memory of those parameters, unsharded.",
            fix=_FIX,
        ),
    )


def _lost(window: Window, waits: WindowWaits | None) -> Intervals:
    again = [one for one in moved(window) if one.module == ROOT and one.what == "backward"]
    if not again:
        return EMPTY
    gathered = union(np.concatenate([one.start_ns for one in again]), np.concatenate([one.end_ns for one in again]))
    return gathered - window.spans.busy(Kind.COMPUTE) - waited(window, waits)


FINDING = Rule("root-resharded", root_resharded, is_of_plan=True)
