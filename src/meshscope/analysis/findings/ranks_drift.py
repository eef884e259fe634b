"""Replicas that drift apart: gradients or parameters that must be equal on all ranks and are not.

Where every rank holds the whole model and averages gradients: DDP (by the strategy, or by its spans in a trace) and
pmap. Elsewhere, of the parameters that several ranks are known to hold the same of: the norms of a tensor-parallel
model, or what HSDP's groups each hold. Shards differ by design. An all-reduce leaves the same bits on every rank, so
sums of replicas are equal to the last digit; a millionth of them is allowed for what sums in another order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial

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

_FIX_MESH = """# before the update, what each rank has only a part of:
for parameter in model.parameters():
    parameter.grad = parameter.grad.redistribute(
        placements=parameter.placements)"""


def ranks_drift(run: Run) -> tuple[Finding, ...]:
    by_step: dict[int, dict[int, Checked]] = defaultdict(dict)
    for entry in run.checks:
        by_step[entry.step][entry.rank] = entry
    compared: dict[str, Callable[[Checked], float | None]] = {}
    if _is_whole(run):
        compared = {"gradients": _gradients, "parameters": _parameters}
    for ranks in dict.fromkeys(ranks for entry in run.checks for ranks in (*entry.replicas, *entry.gradient_replicas)):
        held = f"that {_named(ranks)} hold the same of"
        compared[f"gradients {held}"] = partial(_replica, ranks, "gradient_replicas")
        compared[f"parameters {held}"] = partial(_replica, ranks, "replicas")
    whole = {step: found for step, found in sorted(by_step.items()) if len(found) > 1}
    said = [words for what, value in compared.items() if (words := _differing(what, value, whole))]
    if not said:
        return ()
    return (
        Finding(
            code=FINDING.code,
            title="replicas drift apart",
            evidence=tuple(said),
            advice="Each rank trains a model of its own: what is saved or measured is one rank's, on its share of the "
            "data. See that every gradient is averaged over ranks before the update."
            if _is_whole(run)
            else "Ranks that hold the same parameter no longer agree on it: each has updated it by its own part of the "
            "gradient. See that these gradients are added up over the ranks before the update.",
            fix=_fix(run),
            is_grave=True,
        ),
    )


def _fix(run: Run) -> str:
    if run.experiment.framework == "jax":
        return _FIX_JAX
    return _FIX if _is_whole(run) else _FIX_MESH


def _gradients(entry: Checked) -> float | None:
    return entry.gradients


def _parameters(entry: Checked) -> float | None:
    return entry.parameters


def _replica(ranks: str, column: str, entry: Checked) -> float | None:
    found: float | None = getattr(entry, column).get(ranks)
    return found


def _named(ranks: str) -> str:
    return ranks_words([int(rank) for rank in ranks.split(",") if rank.isdigit()])


def holds_replicas(run: Run) -> bool:
    """Whether something of the run has to be equal on several ranks."""
    return _is_whole(run) or any(entry.replicas for entry in run.checks)


def _is_whole(run: Run) -> bool:
    """Whether every rank holds the whole model."""
    return run.experiment.approach in REPLICATED or any(is_ddp(window) for window in run.windows)


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
    """No finite number on all ranks is another trouble; on some of them it is this one."""
    wrong = [number for number in sums if not math.isfinite(number)]
    if wrong:
        return len(wrong) < len(sums)
    return len(sums) > 1 and max(sums) - min(sums) > TOLERANCE * max(abs(number) for number in sums)


FINDING = Rule("ranks-drift", ranks_drift)
