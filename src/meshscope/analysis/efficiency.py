"""How much of what the devices could multiply a run makes use of: model FLOPs, and MFU against the datasheet's peak.

FLOPs are the model's: of a transformer by formula (``analysis.model_flops``), of any other what its recording says that
a sample takes, by formula or by a framework's counter. Where it says neither there are none: 6 N is no guess for what
may be any model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from meshscope.analysis.model_flops import Flops, Shape, flops, least_flops, tied_shape
from meshscope.analysis.peaks import Device, device
from meshscope.analysis.standing import device_kind
from meshscope.analysis.steps import steps
from meshscope.experiment import Experiment
from meshscope.run import Run
from meshscope.units import NS_PER_S

_SHAPE = ("layers", "width", "vocab", "seq")
_NEVER_LEFT_OUT = 2 / 3
"""Of the three products of a layer, forward, of its weights' gradients and of its inputs', the first layer needs only
two; and a counter may add what is no product."""


@dataclass(frozen=True)
class Efficiency:
    """``flops`` per token (None: not known); ``flop_per_step`` of all ranks; ``flops_per_s`` of one rank.

    ``mfu_frac`` is that over ``peak_flops_per_s`` of ``device`` in ``precision``, dense; ``measured_frac`` over the
    best matrix product that was measured on one (``measured_peak_flops_per_s``), and ``least_frac`` the share of the
    peak of what cannot be left out. NaN where not known, and ``why`` says why there is no MFU. A ``least_frac`` above 1
    cannot be: then ``is_impossible``, and something the run says of itself is wrong. ``flop_per_sample`` and ``how`` it
    was counted are of models that are not counted per token.
    """

    flops: Flops | None
    tokens_per_step: int
    flop_per_step: float
    flops_per_s: float
    device: str
    precision: str
    peak_flops_per_s: float
    mfu_frac: float
    measured_frac: float
    source: str
    why: str
    least_frac: float = math.nan
    measured_peak_flops_per_s: float = math.nan
    flop_per_sample: float = math.nan
    how: str = ""

    @property
    def is_impossible(self) -> bool:
        return self.least_frac > 1


_UNKNOWN = Efficiency(None, 0, math.nan, math.nan, "", "", math.nan, math.nan, math.nan, "", "")


def efficiency(run: Run) -> Efficiency:
    """From the median step, and from what the run says of its model, batch and devices."""
    here, step_ns = run.experiment, steps(run).median_ns
    shape, tokens = shape_of(here), here.global_batch * here.sequence_length
    if not here.strategy:
        return _because("a trace alone says neither the model nor the batch")
    if here.flop_per_sample > 0 or here.flop_why:
        return _by_sample(run, step_ns)
    if shape is None or not tokens:
        return _because(f"the recording does not say {'the model' if shape is None else 'the batch'}")
    counted = flops(shape, here.sequence_length)
    flop = counted.per_token * tokens
    rate = _per_rank(flop, step_ns, here)
    known = Efficiency(counted, tokens, flop, rate, "", "", math.nan, math.nan, math.nan, "", "")
    return _against_peak(run, known, least_flops(shape, here.sequence_length).per_token / counted.per_token)


def _by_sample(run: Run, step_ns: float) -> Efficiency:
    """Of a model whose recording says what a sample takes, or why it does not."""
    here = run.experiment
    if here.flop_why:
        return _because(f"the model's FLOPs are unknown: {here.flop_why}")
    if not here.global_batch:
        return _because("the recording does not say the batch")
    flop = here.flop_per_sample * here.global_batch
    known = replace(
        _UNKNOWN,
        tokens_per_step=here.global_batch * here.sequence_length,
        flop_per_step=flop,
        flops_per_s=_per_rank(flop, step_ns, here),
        flop_per_sample=here.flop_per_sample,
        how=here.flop_how,
    )
    return _against_peak(run, known, _NEVER_LEFT_OUT)


def _per_rank(flop: float, step_ns: float, here: Experiment) -> float:
    return flop / step_ns * NS_PER_S / here.ranks if here.ranks else math.nan


def _because(why: str) -> Efficiency:
    return Efficiency(**{**_UNKNOWN.__dict__, "why": why})


def shape_of(here: Experiment) -> Shape | None:
    """The model, by its options where they are those of a bundled workload, else by its number of parameters."""
    given = {name: here.options.get(name) for name in _SHAPE}
    if all(isinstance(value, int) and value > 0 for value in given.values()):
        shape = tied_shape(**{name: int(value or 0) for name, value in given.items()})
        if here.parameters in (0, shape.parameters):
            return shape
    return Shape(here.parameters) if here.parameters > 0 else None


def _against_peak(run: Run, known: Efficiency, least_share: float) -> Efficiency:
    names = {started.device_name for started in run.ranks if started.device_name} or set(run.experiment.devices)
    name = min(names, default="")
    found, kind = device(name), device_kind(run)
    precision = _precision(run, found)
    about = {**known.__dict__, "device": name, "precision": precision}
    if kind == "cpu":
        return Efficiency(**about | {"why": f"no datasheet peak is known for the CPU {name}".rstrip()})
    if len({product.name if (product := device(other)) else other for other in names}) > 1:
        return Efficiency(**about | {"why": f"the ranks ran on different devices: {', '.join(sorted(names))}"})
    if found is None or not precision or precision not in found.peak_flops_per_s:
        of = f"the device {name}" if found is None else f"{found.name} in {precision or 'an unknown precision'}"
        return Efficiency(**about | {"why": f"no datasheet peak is known for {of}"})
    if math.isnan(known.flops_per_s):
        return Efficiency(**about | {"why": "no unprofiled step past warm-up"})
    peak = found.peak_flops_per_s[precision] / found.dies
    ceiling = found.measured_flops_per_s / found.dies if precision in ("bf16", "fp16") else 0.0
    return Efficiency(
        **about
        | {
            "device": found.name,
            "peak_flops_per_s": peak,
            "mfu_frac": known.flops_per_s / peak,
            "least_frac": known.flops_per_s / peak * least_share,
            "measured_frac": known.flops_per_s / ceiling if ceiling else math.nan,
            "source": found.source,
            "measured_peak_flops_per_s": ceiling or math.nan,
        }
    )


def _precision(run: Run, found: Device | None) -> str:
    """What matrices are multiplied in. fp32 means tf32 on a GPU that has it (XLA's default, and what the bundled torch
    workloads ask for), and bf16 on a TPU (XLA's default)."""
    asked, kind = str(run.experiment.options.get("precision", "")), device_kind(run)
    if asked != "fp32":
        return asked
    has_tf32 = found is not None and "tf32" in found.peak_flops_per_s
    return "tf32" if kind == "gpu" and has_tf32 else "bf16" if kind == "tpu" else asked
