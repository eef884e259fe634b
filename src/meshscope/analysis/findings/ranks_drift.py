"""Replicas that drift apart: gradients or parameters that must be equal on all ranks and are not.

Only where every rank holds the whole model and averages gradients: DDP (by the strategy, or by its spans in a trace)
and pmap. Shards differ by design. An all-reduce leaves the same bits on every rank, so sums of replicas are equal to
the last digit; a millionth of them is allowed for what sums in another order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.passes import is_ddp
from meshscope.recording.entries import Checked
from meshscope.run import Run
from meshscope.units import counted

TOLERANCE = 1e-6
REPLICATED = ("ddp", "pmap")

_FIX = """# call the wrapper, not model.module; leave no_sync() before the last
# micro-batch:
model = torch.nn.parallel.DistributedDataParallel(model)
loss = loss_function(model(batch)); loss.backward()"""
_FIX_JAX = """# inside the mapped step, before the update:
grads = jax.lax.pmean(grads, axis_name="data")"""


def ranks_drift(run: Run) -> tuple[Finding, ...]:
    if run.experiment.strategy not in REPLICATED and not any(is_ddp(window) for window in run.windows):
        return ()
    by_step: dict[int, dict[int, Checked]] = defaultdict(dict)
    for entry in run.checks:
        by_step[entry.step][entry.rank] = entry
    whole = {step: found for step, found in sorted(by_step.items()) if len(found) > 1}
    said = [
        words
        for what, value in (("gradients", _gradients), ("parameters", _parameters))
        if (words := _differing(what, value, whole))
    ]
    if not said:
        return ()
    is_jax = run.experiment.framework == "jax"
    return (
        Finding(
            code=FINDING.code,
            title="replicas drift apart",
            evidence=tuple(said),
            advice="Each rank trains a model of its own: what is saved or measured is one rank's, on its share of the "
            "data. See that every gradient is averaged over ranks before the update.",
            fix=_FIX_JAX if is_jax else _FIX,
            is_grave=True,
        ),
    )


def _gradients(entry: Checked) -> float | None:
    return entry.gradients


def _parameters(entry: Checked) -> float | None:
    return entry.parameters


def _differing(what: str, value: Callable[[Checked], float | None], steps: dict[int, dict[int, Checked]]) -> str:
    """In how many checks ranks differ, since when and how far; "" where they do not."""
    known = {
        step: {rank: number for rank, entry in found.items() if (number := value(entry)) is not None}
        for step, found in steps.items()
    }
    apart = {step: sums for step, sums in known.items() if _is_apart(list(sums.values()))}
    if not apart:
        return ""
    first, sums = next(iter(apart.items()))
    low, high = min(sums, key=lambda rank: sums[rank]), max(sums, key=lambda rank: sums[rank])
    figures = f"{ranks_words([low])} {sums[low]:.6g}, {ranks_words([high])} {sums[high]:.6g}"
    of = counted(sum(len(found) > 1 for found in known.values()), "check")
    return f"the sum of {what} differs between ranks in {len(apart)} of {of}, first at step {first}: {figures}"


def _is_apart(sums: list[float]) -> bool:
    """NaN on all ranks is another trouble; on some of them it is this one."""
    wrong = [number for number in sums if math.isnan(number)]
    if wrong:
        return len(wrong) < len(sums)
    return len(sums) > 1 and max(sums) - min(sums) > TOLERANCE * max(abs(number) for number in sums)


FINDING = Rule("ranks-drift", ranks_drift)
