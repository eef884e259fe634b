"""Input-bound: steps wait for their batches.

Fires when the rank that waits longest does so for a twentieth of the unprofiled time past warm-up, over eight steps or
more; or, in GPU traces, when devices are idle for the loader for a tenth of the time.
"""

from __future__ import annotations

import numpy as np

from meshscope.analysis.findings.idle_cost import bound_by, cost, words
from meshscope.analysis.findings.rule import Cost, Finding, Rule, share
from meshscope.analysis.findings.whole import usual_step
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.slow_steps import FEWEST, InputWait, input_waits
from meshscope.analysis.steps import measured_steps
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ratio

LEAST_FRAC = 0.05
_MOSTLY = 0.5

_FIX = """loader = torch.utils.data.DataLoader(
    dataset, batch_size=batch, num_workers=8, prefetch_factor=4,
    pin_memory=True, persistent_workers=True)
batch = batch.to(device, non_blocking=True)"""
_FIX_JAX = """# put the next batch on the devices while this step runs:
following = jax.device_put(next(batches), sharding)
state, loss = step(state, batch)
batch = following"""


def input_bound(run: Run) -> tuple[Finding, ...]:
    found = _journal(run) or _traced(run)
    if found is None:
        return ()
    cost, evidence, ranks = found
    return (
        Finding(
            code=FINDING.code,
            title="input-bound",
            ranks=ranks,
            **vars(cost),
            evidence=evidence,
            advice="Read and prepare batches beside the training: more workers, a deeper queue, less work per sample.",
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
        ),
    )


Found = tuple[Cost, tuple[str, ...], tuple[int, ...]]


def _journal(run: Run) -> Found | None:
    measured = measured_steps(run)
    known = measured.data_wait_ns >= 0
    if int(known.sum()) < FEWEST:
        return None
    frac = ratio(int(measured.data_wait_ns[known].sum()), int(measured.duration_ns[known].sum()))
    if not frac >= LEAST_FRAC:
        return None
    waits = input_waits(run)
    most = max(waits, key=lambda one: one.wait_ns)
    slow = [one for one in waits if one.wait_ns >= _MOSTLY * most.wait_ns]
    median_ns = float(np.median(measured.data_wait_ns[known]))
    count = counted(int(known.sum()), "step")
    ranks = tuple(one.rank for one in slow) if len(slow) < len(waits) else ()
    if len(waits) == 1 and run.experiment.ranks > 1:
        said = f"the process, which fetches for all ranks, waits for its batches for {percent(frac)} of {count}"
        return share(frac, usual_step(run)), (f"{said}, {duration(median_ns)} in the median{_stalls(most)}",), ranks
    said = f"the rank that waits longest for its batch does so for {percent(frac)} of {count}"
    return share(frac, usual_step(run)), (f"{said}, {duration(median_ns)} in the median", *_each(most, slow)), ranks


def _each(most: InputWait, slow: list[InputWait]) -> tuple[str, ...]:
    more = (f"{ranks_words([one.rank for one in slow])} wait",) if len(slow) > 1 else ()
    return (f"rank {most.rank} waits most, {percent(most.frac)} of its steps{_stalls(most)}", *more)


def _stalls(most: InputWait) -> str:
    return f"; a tenth of the step or more in {len(most.stalls)} of {most.steps}" if most.stalls else ""


def _traced(run: Run) -> Found | None:
    bound = bound_by(run, "input")
    if not bound:
        return None
    said = f"{words(bound[0], run)} while its host loads"
    return cost(bound[0], run), (said,), tuple(sorted(one.rank for one in bound))


FINDING = Rule("input-bound", input_bound)
