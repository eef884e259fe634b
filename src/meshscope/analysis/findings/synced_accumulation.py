"""Accumulation that synchronizes: DDP reduces the gradients of every micro-batch, though only their sum is used.

Fires where one series of buckets (equal sizes, all known) goes out more than once before a step of the optimizer, in
half of its steps or more, and the passes that need not have reduced are exposed for a fiftieth of the traced step.
Waiting for a late rank, where it is known, is left out: the last pass waits for it as well.
"""

from __future__ import annotations

from meshscope.analysis.ddp import ddp, repeated
from meshscope.analysis.exposure import waited
from meshscope.analysis.findings.rule import Finding, Rule, per_step
from meshscope.analysis.waiting import WindowWaits, waiting
from meshscope.intervals import EMPTY, Intervals
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import counted, duration, percent

LEAST_FRAC = 1 / 50
MOSTLY = 0.5

_FIX = """for number, part in enumerate(micro_batches):
    is_last = number == len(micro_batches) - 1
    with contextlib.nullcontext() if is_last else model.no_sync():
        loss_function(model(part)).backward()
optimizer.step()"""


def synced_accumulation(run: Run) -> tuple[Finding, ...]:
    found = ddp(run)
    if found is None or not found.repeats or found.repeats < MOSTLY * found.optimizer_steps:
        return ()
    waits = waiting(run).windows
    lost = {window: _lost(window, waits.get(window)) for window in run.windows if window.device_kind != "none"}
    cost = per_step(lost, run)
    if not cost.cost_frac >= LEAST_FRAC:
        return ()
    steps = counted(found.optimizer_steps, "optimizer step")
    return (
        Finding(
            code=FINDING.code,
            title="gradients are reduced in every micro-batch",
            **vars(cost),
            evidence=(
                f"before {found.repeats} of {steps} of all ranks the same series of buckets was all-reduced more than "
                f"once: {counted(found.repeated, 'backward pass', 'backward passes')} too many",
                f"those passes are exposed for {duration(cost.cost_ns)}, {percent(cost.cost_frac)} of {cost.of}",
            ),
            advice="Accumulate under no_sync(), and let the last micro-batch alone reduce what they add up to.",
            fix=_FIX,
        ),
    )


def _lost(window: Window, waits: WindowWaits | None) -> Intervals:
    exposed = EMPTY
    for _, one in repeated([window])[1]:
        exposed = exposed | one.exposed
    return exposed - waited(window, waits)


FINDING = Rule("synced-accumulation", synced_accumulation, is_of_plan=True)
