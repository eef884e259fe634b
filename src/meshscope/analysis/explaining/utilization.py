"""Explains model FLOPs and MFU: the arithmetic of the model over the time it took and the device's peak."""

from __future__ import annotations

import math
from functools import partial

from meshscope.analysis.efficiency import Efficiency, efficiency
from meshscope.analysis.explaining.figure import MEDIAN, PRODUCT, QUOTIENT, RATE, SUM, Figure, counted_of, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.steps import measured_steps
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


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    return tuple(
        Number(name, unit, said, _MODEL, partial(_cases, name=name), (f"efficiency.{field}", field), ())
        for name, (field, unit, said) in _NUMBERS.items()
    )


def _cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    found = efficiency(asked.run)
    figure = _figure(asked.run, found, name)
    if figure is None:
        return (Case("one rank", None, why=found.why or "no matrix product was measured on such a device"),)
    notes = [f"peak: {found.source}"] if name == "mfu" and found.source else []
    if name == "mfu" and found.is_impossible:
        notes.append("more than the whole peak cannot be: the model, the batch or the device is not as recorded")
    field = _NUMBERS[name][0]
    return (
        Case("all ranks" if name == "flop_per_step" else "one rank", figure, f"efficiency.{field}", notes=tuple(notes)),
    )


def _figure(run: Run, found: Efficiency, name: str) -> Figure | None:
    if found.flops is None:
        return None
    matrices = Figure(
        f"6 × {found.flops.parameters:,.0f} parameters".replace(",", "\u202f"), found.flops.matrices, "FLOP"
    )
    attention = Figure(f"attention {found.flops.attention_factors}".strip(), found.flops.attention, "FLOP")
    token = made("FLOP per token", SUM, matrices, attention, unit="FLOP")
    step = made("FLOP per step", PRODUCT, token, counted_of(found.tokens_per_step, "tokens"), unit="FLOP")
    if name in ("flop_per_token", "flop_per_step"):
        return token if name == "flop_per_token" else step
    if math.isnan(found.flops_per_s):
        return None
    of = measured_steps(run)
    pairs = zip(of.number.tolist(), of.duration_ns.tolist(), strict=True)
    median = made("median step", MEDIAN, *(Figure(f"step {number}", time_ns) for number, time_ns in pairs))
    all_ranks = made("FLOP/s of all ranks", RATE, step, median, unit="FLOP/s")
    rank = made("FLOP/s of a rank", QUOTIENT, all_ranks, counted_of(run.experiment.ranks, "ranks"), unit="FLOP/s")
    return rank if name == "flops_per_s" else _against(found, rank, name)


def _against(found: Efficiency, rank: Figure, name: str) -> Figure | None:
    value = found.mfu_frac if name == "mfu" else found.measured_frac
    if math.isnan(value):
        return None
    if name == "mfu":
        of = Figure(f"peak of {found.device} in {found.precision}, dense", found.peak_flops_per_s, "FLOP/s")
    else:
        of = Figure(f"best matrix product on {found.device}", found.measured_peak_flops_per_s, "FLOP/s")
    return made(name, QUOTIENT, rank, of, unit="frac")


GROUP = Group("model FLOPs", 10, numbers)
