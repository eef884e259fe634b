"""Explains how a strategy stands against one device."""

from __future__ import annotations

import math

from meshscope.analysis.explaining.figure import MEDIAN, QUOTIENT, RATE, Figure, counted_of, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.standing import baseline_of
from meshscope.analysis.steps import measured_steps, steps
from meshscope.run import Run
from meshscope.units import ratio

_EXCLUDES = "steps that were being profiled, the first two, and steps that compiled, of both runs"


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    return (
        Number(
            "speedup",
            "×",
            "The throughput of the strategy over that of the same framework's run on one device.",
            _EXCLUDES,
            _speedup,
            ("×1", "comparison.speedup"),
            (),
            no_step="it compares medians of two runs; throughput can",
        ),
        Number(
            "efficiency",
            "frac",
            "The speedup over the number of ranks: what each rank brings, against one device by itself.",
            _EXCLUDES,
            _efficiency,
            ("eff", "efficiency_frac", "comparison.efficiency_frac"),
            (),
            no_step="it compares medians of two runs; throughput can",
        ),
    )


def _speedup(asked: Asked) -> tuple[Case, ...]:
    figure = _figure(asked)
    if isinstance(figure, str):
        return (Case("all ranks", None, why=figure),)
    return (Case("all ranks", figure, _json(asked, "speedup")),)


def _efficiency(asked: Asked) -> tuple[Case, ...]:
    figure = _figure(asked)
    if isinstance(figure, str):
        return (Case("all ranks", None, why=figure),)
    ranks = counted_of(asked.run.experiment.ranks, "ranks")
    if not ranks.value:
        return (Case("all ranks", None, why="how many ranks it has is not recorded"),)
    return (
        Case("all ranks", made("efficiency", QUOTIENT, figure, ranks, unit="frac"), _json(asked, "efficiency_frac")),
    )


def _json(asked: Asked, field: str) -> str:
    return f"comparison.strategies[strategy={asked.run.experiment.strategy}].{field}"


def _figure(asked: Asked) -> Figure | str:
    """The speedup, or why there is none."""
    run = asked.run
    if not run.experiment.strategy:
        return "a trace alone says nothing of unprofiled steps"
    if run.experiment.is_baseline:
        return "it is what the others are measured against"
    baseline = baseline_of(run, asked.runs)
    if baseline is None:
        return "the recording has no run of the same framework on one device of the same kind"
    for one in (run, baseline):
        if math.isnan(ratio(steps(one).samples_per_s, steps(one).samples_per_s)):
            return f"{one.experiment.strategy}: no unprofiled step past warm-up says its samples"
    return made("speedup", QUOTIENT, _throughput(run), _throughput(baseline), unit="×")


def _throughput(run: Run) -> Figure:
    of = measured_steps(run)
    pairs = zip(of.number.tolist(), of.samples.tolist(), of.duration_ns.tolist(), strict=True)
    rates = [
        made(
            f"step {number}", RATE, Figure("samples", samples, "samples"), Figure("its time", time_ns), unit="samples/s"
        )
        for number, samples, time_ns in pairs
    ]
    return made(f"throughput of {run.experiment.strategy}", MEDIAN, *rates, unit="samples/s")


GROUP = Group("against one device", 3, numbers)
