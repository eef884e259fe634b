"""Ragged batches: ranks that train on different numbers of samples in one step.

Fires when the shape of a batch, or the number of samples of a step, differs between ranks. DDP averages gradients over
ranks, not over samples, so one sample of a small batch counts more; and the smaller rank waits for the others. A rank
that counts no sample in any step trains on those that another one counts: a stage of a pipeline, say.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.steps import of_ranks_with
from meshscope.run import Run
from meshscope.units import counted

_MOST = 2

_FIX = """# every rank the same number of samples:
sampler = torch.utils.data.DistributedSampler(dataset, drop_last=True)
loader = torch.utils.data.DataLoader(
    dataset, batch_size=batch, sampler=sampler, drop_last=True)"""
_FIX_JAX = """# cut what does not divide, before the batch is put on the devices:
whole = len(batch) // jax.device_count() * jax.device_count()
batch = batch[:whole]"""

Steps = dict[int, dict[str, list[int]]]


def ragged_batch(run: Run) -> tuple[Finding, ...]:
    said = [
        words
        for words in (_differing("batches", "check", _shapes(run)), _differing("samples", "step", _samples(run)))
        if words
    ]
    if not said:
        return ()
    is_jax = run.experiment.framework == "jax"
    return (
        Finding(
            code=FINDING.code,
            title="ragged batches",
            evidence=tuple(said),
            advice="Gradients are averaged over ranks, not over samples: those of the smaller batch count for more "
            "than their share. Give every rank batches of one size, or weight each rank's loss by its samples.",
            fix=_FIX_JAX if is_jax else _FIX,
            is_grave=True,
        ),
    )


def _shapes(run: Run) -> Steps:
    found: Steps = defaultdict(lambda: defaultdict(list))
    for entry in run.checks:
        if entry.batch_shape:
            found[entry.step]["×".join(map(str, entry.batch_shape))].append(entry.rank)
    return found


def _samples(run: Run) -> Steps:
    is_told = (run.steps.samples >= 0) & of_ranks_with(run.steps, run.steps.samples > 0)
    order = np.argsort(run.steps.step[is_told], kind="stable")
    rank, step = run.steps.rank[is_told][order], run.steps.step[is_told][order]
    samples = run.steps.samples[is_told][order]
    bounds = [0, *(np.flatnonzero(np.diff(step)) + 1).tolist(), len(step)] if len(step) else []
    return {
        int(step[start]): {str(value): rank[start:end][samples[start:end] == value].tolist() for value in values}
        for start, end in pairwise(bounds)
        for values in (_different(samples[start:end]),)
    }


def _different(samples: npt.NDArray[np.int64]) -> list[int]:
    """In the order in which they come; in most steps all ranks take as many."""
    first = int(samples[0])
    return [first] if (samples == first).all() else list(dict.fromkeys(samples.tolist()))


def _differing(what: str, of: str, steps: Steps) -> str:
    """In how many steps ranks differ, and how in the first of them."""
    whole = {step: ranks for step, ranks in sorted(steps.items()) if sum(map(len, ranks.values())) > 1}
    apart = {step: ranks for step, ranks in whole.items() if len(ranks) > 1}
    if not apart:
        return ""
    first, ranks = next(iter(apart.items()))
    each = "; ".join(f"{ranks_words(sorted(who))}: {value}" for value, who in ranks.items())
    count = f"{len(apart)} of {counted(len(whole), of)}"
    return f"{what} differ between ranks in {count}, first at step {first}: {each}"


FINDING = Rule("ragged-batch", ragged_batch)
