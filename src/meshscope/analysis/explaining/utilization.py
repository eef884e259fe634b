"""Explains model FLOPs and MFU: the arithmetic of the model over the time it took and the device's peak."""

from __future__ import annotations

import math
from functools import partial

from meshscope.analysis.efficiency import Efficiency, efficiency, shape_of
from meshscope.analysis.explaining.figure import MEDIAN, PRODUCT, QUOTIENT, RATE, SUM, Figure, counted_of, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.explaining.step_alone import length
from meshscope.analysis.steps import measured_steps
from meshscope.experiment import Experiment
from meshscope.run import Run

_MODEL = "what is computed again to save memory, what a causal mask skips, and all but matrix products and attention"
_NUMBERS: dict[str, tuple[str, str, str]] = {
    "flop_per_token": ("flop_per_token", "FLOP", "What the model computes for a token, there and back, by formula."),
    "flop_per_step": ("flop_per_step", "FLOP", "What the model computes in a step of all ranks, by formula."),
    "flops_per_s": ("flops_per_s_per_rank", "FLOP/s", "The model's FLOP of a step over its median time and the ranks."),
    "mfu": ("mfu_frac", "frac", "The model's FLOP/s of a rank as a share of its device's datasheet peak, dense."),
    "of_measured": (
        "of_measured_frac",
        "frac",
        "The model's FLOP/s of a rank as a share of the best matrix product measured on such a device.",
    ),
}
_TIMED = ("flops_per_s", "mfu", "of_measured")
_CONVENTION = (
    "by the usual count: every parameter multiplies every token three times, two FLOP each (6 N), and attention under "
    "a causal mask is 6 × layers × width × sequence (PaLM, appendix B, halved)"
)


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    return tuple(
        Number(
            name, unit, said, _MODEL, partial(_cases, name=name), (f"efficiency.{field}", field),
            ("step",) if name in _TIMED else (), "every rank has the same share of the model's FLOP",
            "by formula every step computes as much", known_steps=_reported,
        )
        for name, (field, unit, said) in _NUMBERS.items()
    )  # fmt: skip


def _reported(run: Run) -> set[int]:
    return set(run.steps.step.tolist())


def _cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    found = efficiency(asked.run)
    figure = _figure(asked, found, name)
    if figure is None:
        return (Case("one rank", None, why=_why(asked, found, name)),)
    here = asked.run.experiment
    notes = [here.flop_how] if found.flops is None else [_CONVENTION, _parameters(here)]
    notes += [f"peak: {found.source}"] if name == "mfu" and found.source else []
    if name == "mfu" and found.is_impossible:
        notes.append("more than the whole peak cannot be: the model, the batch or the device is not as recorded")
    if asked.step is not None:
        notes.append(f"of step {asked.step} alone, not the median")
    json = "" if asked.step is not None else f"efficiency.{_NUMBERS[name][0]}"
    return (Case("all ranks" if name == "flop_per_step" else "one rank", figure, json, notes=tuple(notes)),)


def _why(asked: Asked, found: Efficiency, name: str) -> str:
    if name == "flop_per_token" and not math.isnan(found.flop_per_sample):
        return "the FLOPs of this model are counted per sample"
    if found.why:
        return found.why
    if asked.step is not None:
        return f"not every rank has finished step {asked.step}"
    return "no matrix product was measured on such a device" if name == "of_measured" else "no unprofiled step"


def _parameters(here: Experiment) -> str:
    shape = shape_of(here)
    if shape is None or not shape.layers:
        return "N is the number of parameters that the recording says; without layers attention is not counted"
    return "N counts all parameters, worked out from layers, width, vocabulary and sequence length of the options"


def _figure(asked: Asked, found: Efficiency, name: str) -> Figure | None:
    run = asked.run
    here = run.experiment
    token, step = _step(here, found)
    if step is None or name in ("flop_per_token", "flop_per_step"):
        return token if name == "flop_per_token" else step
    time = _time(asked, found)
    if time is None or not time.value or not here.ranks:
        return None
    all_ranks = made("FLOP/s of all ranks", RATE, step, time, unit="FLOP/s")
    rank = made("FLOP/s of a rank", QUOTIENT, all_ranks, counted_of(here.ranks, "ranks"), unit="FLOP/s")
    return rank if name == "flops_per_s" else _against(found, rank, name)


def _step(here: Experiment, found: Efficiency) -> tuple[Figure | None, Figure | None]:
    """What a token and what a step computes; no figure of a token where the model is counted per sample."""
    samples = counted_of(here.global_batch, "samples")
    if found.flops is None:
        sample = Figure("FLOP per sample", found.flop_per_sample, "FLOP")
        is_known = not math.isnan(found.flop_per_sample)
        return None, made("FLOP per step", PRODUCT, sample, samples, unit="FLOP") if is_known else None
    token = _token(here, found)
    tokens = made("tokens of a step", PRODUCT, samples, counted_of(here.sequence_length, "tokens"), unit="tokens")
    return token, made("FLOP per step", PRODUCT, token, tokens, unit="FLOP")


def _token(here: Experiment, found: Efficiency) -> Figure:
    flops, shape = found.flops, shape_of(here)
    assert flops is not None
    matrices = made("matrix products", PRODUCT, Figure("FLOP for a parameter and token", 6, ""),
                    Figure("parameters", flops.parameters, "parameters"), unit="FLOP")  # fmt: skip
    if shape is None or not shape.layers:
        return Figure("FLOP per token", matrices.value, "FLOP", PRODUCT, matrices.of)
    factors = (("FLOP of attention", 6, ""), ("layers", shape.layers, "layers"), ("of width", shape.width, ""),
               ("tokens of sequence", here.sequence_length, ""))  # fmt: skip
    attention = made("attention", PRODUCT, *(Figure(*factor) for factor in factors), unit="FLOP")
    return made("FLOP per token", SUM, matrices, attention, unit="FLOP")


def _time(asked: Asked, found: Efficiency) -> Figure | None:
    """The median step, or the one that was asked about."""
    if asked.step is not None:
        return length(asked.run, asked.step)
    if math.isnan(found.flops_per_s):
        return None
    of = measured_steps(asked.run)
    pairs = zip(of.number.tolist(), of.duration_ns.tolist(), strict=True)
    return made("median step", MEDIAN, *(Figure(f"step {number}", time_ns) for number, time_ns in pairs))


def _against(found: Efficiency, rank: Figure, name: str) -> Figure | None:
    if name == "mfu":
        of = Figure(f"peak of {found.device} in {found.precision}, dense", found.peak_flops_per_s, "FLOP/s")
    else:
        of = Figure(f"best matrix product on {found.device}", found.measured_peak_flops_per_s, "FLOP/s")
    return None if math.isnan(of.value) else made(name, QUOTIENT, rank, of, unit="frac")


GROUP = Group("model FLOPs", 10, numbers)
