"""Whether strategies learn what one device learns: the losses of their steps against those of the single-device run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshscope.analysis.standing import device_kind
from meshscope.analysis.steps import Steps, steps
from meshscope.run import Run
from meshscope.samples import Floats
from meshscope.units import counted

AGREE, DIFFER, EXCLUDED, UNSURE = "agree", "differ", "excluded", "cannot say"

TOLERANCE_FRAC = 1e-4
"""The largest difference, as a share of the single device's loss, that other orders of the same fp32 sums may make.

fp32 rounds by 6e-8; losses of sound strategies (ddp, fsdp, pmap, pjit on four CPU ranks) were seen within 5e-7 over
60 steps. Two ranks that did not average their gradients were 5e-5 away after one update and 4e-3 after two.
"""

EARLY_STEPS = 60
"""Only the first so many steps are judged: each update passes rounding on, and for how long it stays small was seen
for so many."""

_FEWEST = 3
"""AdamW's first update is of one length whatever the gradient's, so that it takes a second one to tell."""
_HOW = frozenset({
    "steps", "accumulate", "checkpoint_activations", "bucket_mb", "bucket_view", "static_graph", "compress", "inject",
    "sync_every_micro_batch", "reshard", "prefetch", "replicas", "tensor", "context", "spec", "stages", "schedule",
    "devices", "device", "compile", "precision", "wrap",
})  # fmt: skip
"""Options that change how something is learned and not what, or that are judged apart. Any other that differs, also
one that is not known here, makes it another job."""


@dataclass(frozen=True)
class Agreement:
    """One strategy against the single device of its framework. ``state``: agree, differ, excluded or cannot say.

    ``excluded`` are those that are not meant to have these losses, or not as closely; ``why`` says it, and what else
    is not known. ``against`` is "" where nothing is there to compare with. ``steps`` were compared, from the first on,
    at most ``EARLY_STEPS``; ``largest_frac`` is the largest difference of them as a share of the single device's loss,
    in step ``at_step``: NaN and −1 where no step is known of both.
    """

    strategy: str
    framework: str
    state: str
    why: str
    against: str = ""
    steps: int = 0
    largest_frac: float = float("nan")
    at_step: int = -1


def losses(runs: tuple[Run, ...]) -> tuple[Agreement, ...]:
    """Of every strategy among the runs that is a workload, in their order; of what others wrote nothing is known."""
    workloads = [run for run in runs if run.experiment.options and run.experiment.model]
    singles = [run for run in workloads if run.experiment.is_baseline]
    return tuple(_agreement(run, singles) for run in workloads if not run.experiment.is_baseline)


def _agreement(run: Run, singles: list[Run]) -> Agreement:
    here = run.experiment
    mine = [one for one in singles if one.experiment.framework == here.framework]
    if not mine:
        why = f"{here.framework} has no single-device run beside it"
        return Agreement(run.name, here.framework, UNSURE, why)
    # Of several the one that differs in nothing, where there is one.
    single = min(mine, key=lambda one: bool(_apart(run, one)))
    number, share = _differences(steps(run), steps(single))
    state, why = _judged(run, single, number, share)
    known = np.flatnonzero(~np.isnan(share))
    at = int(known[share[known].argmax()]) if len(known) else -1
    return Agreement(
        strategy=run.name,
        framework=here.framework,
        state=state,
        why=why,
        against=single.name,
        steps=len(known),
        largest_frac=float(share[at]) if at >= 0 else float("nan"),
        at_step=int(number[at]) if at >= 0 else -1,
    )


def _differences(run: Steps, single: Steps) -> tuple[np.ndarray, Floats]:
    """Step numbers that both finished, the early ones, and by how much the losses differ as a share of the single's."""
    number, mine, others = np.intersect1d(run.number, single.number, assume_unique=True, return_indices=True)
    early = number < EARLY_STEPS
    told, expected = run.loss[mine][early], single.loss[others][early]
    apart = np.abs(told - expected)
    share: Floats = np.divide(apart, np.abs(expected), out=np.where(apart == 0, 0.0, np.inf), where=expected != 0)
    share[~np.isfinite(told) | ~np.isfinite(expected)] = np.nan
    return number[early], share


def _judged(run: Run, single: Run, number: np.ndarray, share: Floats) -> tuple[str, str]:
    if why := _apart(run, single):
        return EXCLUDED, why
    if not len(number):
        return UNSURE, "no step was finished by both"
    if (share > TOLERANCE_FRAC).any():
        return DIFFER, f"by more than {TOLERANCE_FRAC:g} of {single.name}'s loss"
    if np.isnan(share).any():
        return UNSURE, f"no loss is known of step {number[np.isnan(share)][0]}"
    if len(number) < _FEWEST:
        return UNSURE, f"losses after one update tell too little: {_FEWEST} steps are needed"
    return AGREE, _cut(run, len(number))


def _cut(run: Run, compared: int) -> str:
    """What an agreement does not cover."""
    planned = min(run.experiment.planned_steps, EARLY_STEPS)
    return f"as far as it got: {compared} of {counted(planned, 'step')}" if compared < planned else ""


def _apart(run: Run, single: Run) -> str:
    """Why the losses are not meant to be those of the single device, or not as closely; "" where they are."""
    options, theirs = run.experiment.options, single.experiment.options
    if faults := [*run.experiment.faults, *single.experiment.faults]:
        return f"ran with injected {' and '.join(dict.fromkeys(faults))}"
    other = [name for name in (options | theirs) if name not in _HOW and options.get(name) != theirs.get(name)]
    if other:
        mine_is, theirs_is = (held.get(other[0], "not told") for held in (options, theirs))
        return f"not the same {other[0].replace('_', ' ')}: {mine_is}, and {theirs_is} on one device"
    return _rounding(run, single)


def _rounding(run: Run, single: Run) -> str:
    options, theirs = run.experiment.options, single.experiment.options
    if ":" in run.experiment.model:
        return "a model of your own may draw or batch-normalize on each rank apart"
    if options.get("dropout"):
        return "ranks draw a dropout of their own"
    if options.get("compress", "none") != "none":
        return f"its gradients are sent as {options['compress']}"
    coarse = [held for held in (options, theirs) if held.get("precision", "fp32") != "fp32"]
    if coarse:
        return f"{coarse[0]['precision']} rounds too coarsely to tell"
    kinds = {device_kind(run), device_kind(single)} - {"cpu"}
    if kinds:
        return f"on {kinds.pop().upper()}s fp32 matrices may be multiplied in tf32, which rounds too coarsely to tell"
    return ""
