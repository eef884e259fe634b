"""Strategies predicted from one recording of another: ``python tests/benchmarks/advisor_warm.py [ROUNDS [MODEL…]]``.

Per model: DDP, FSDP and both pipelines are recorded on two CPU ranks, in turn, several times over. The factors of this
machine are fitted to a DDP recording alone; the step times of the others are then predicted and put beside the median
of their repeats. A prediction holds within the larger of 15 % and twice the spread of the repeats (half of what lies
between the longest and the shortest of their medians, as a share of the median of medians). An order is told by the
measurement where two strategies differ by more than twice the larger of their spreads; each of those is then right or
wrong. What is printed under a model is everything that the verdict rests on.

A model is a preset, or a preset with flags: ``tiny``, ``"tiny --width 512 --batch 16"``. Nothing is asserted.
"""

from __future__ import annotations

import itertools
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from meshscope.advisor.against import ran_on
from meshscope.advisor.calibration import calibration
from meshscope.advisor.multipliers import Multipliers
from meshscope.advisor.recorded import recorded
from meshscope.advisor.timing import timing
from meshscope.analysis.steps import steps
from meshscope.run import Gallery, Run

BASE, OTHERS = "ddp", ("fsdp", "pp-gpipe", "pp-1f1b")
STEPS = 60
LEAST_FRAC = 0.15
SPREADS = 2.0
MODELS = ("tiny", "tiny --layers 6 --width 512 --heads 8 --batch 16")


@dataclass(frozen=True)
class Verdict:
    """Of one strategy, seconds: what was predicted, and the medians of its repeats."""

    strategy: str
    predicted_s: float
    medians_s: tuple[float, ...]

    @property
    def measured_s(self) -> float:
        return statistics.median(self.medians_s)

    @property
    def spread_frac(self) -> float:
        return (max(self.medians_s) - min(self.medians_s)) / 2 / self.measured_s

    @property
    def error_frac(self) -> float:
        return self.predicted_s / self.measured_s - 1

    @property
    def bound_frac(self) -> float:
        return max(LEAST_FRAC, SPREADS * self.spread_frac)

    @property
    def holds(self) -> bool:
        return abs(self.error_frac) <= self.bound_frac


@dataclass(frozen=True)
class Order:
    """Two strategies, the faster one first as measured; None where the spread does not tell."""

    fast: str
    slow: str
    is_right: bool | None


def record(folder: Path, strategy: str, model: str) -> Run:
    """A run of two ranks without a screen."""
    name, *flags = shlex.split(model)
    line = [sys.executable, "-m", "meshscope", "run", strategy, "--model", name, "--ranks", "2", "--steps", str(STEPS)]
    # Several profiled steps at a time: of one, a neighbour on the machine may take a share.
    line += ["--window", "3", "--headless", "--out", str(folder), *flags]
    subprocess.run(line, check=True, capture_output=True, timeout=900)
    _, (run,) = Gallery(folder).at(time.time_ns())
    return run


def recordings(folder: Path, model: str, rounds: int) -> dict[str, list[Run]]:
    """Each strategy once in each round."""
    found: dict[str, list[Run]] = {strategy: [] for strategy in (BASE, *OTHERS)}
    for number, strategy in itertools.product(range(rounds), found):
        found[strategy].append(record(folder / f"{strategy}-{number}", strategy, model))
    return found


def middle(runs: Sequence[Run]) -> Run:
    """The one whose median step is the median of all."""
    return sorted(runs, key=lambda run: steps(run).median_ns)[(len(runs) - 1) // 2]


def verdicts(runs: Mapping[str, Sequence[Run]]) -> tuple[Multipliers, list[Verdict]]:
    """Calibrated on the base alone; of the others nothing but what was asked of them is read for the prediction."""
    base = middle(runs[BASE])
    factors = calibration(base, ran_on(recorded(base))).multipliers
    found = []
    for strategy, some in runs.items():
        asked = recorded(some[0])
        told = timing(asked.architecture, asked.candidate, ran_on(asked), factors)
        found.append(Verdict(strategy, told.step_s.value, tuple(steps(run).median_ns / 1e9 for run in some)))
    return factors, found


def orders(found: Sequence[Verdict]) -> list[Order]:
    """Every pair."""
    told = []
    for one, other in itertools.combinations(found, 2):
        fast, slow = sorted((one, other), key=lambda each: each.measured_s)
        apart = slow.measured_s / fast.measured_s - 1
        is_told = apart > SPREADS * max(fast.spread_frac, slow.spread_frac)
        told.append(Order(fast.strategy, slow.strategy, fast.predicted_s < slow.predicted_s if is_told else None))
    return told


def report(model: str, factors: Multipliers, found: Sequence[Verdict]) -> list[str]:
    """Lines for a person."""
    told = factors.provenance
    lines = [f"{model}: calibrated on {told.strategy} alone ({told.steps} steps), load {os.getloadavg()[0]:.1f}"]
    lines.append("  " + ", ".join(f"{name} {factor:.2f}" for name, factor in factors.factors.items()))
    lines.append(f"  {'strategy':<10}{'predicted':>11}{'measured':>11}{'error':>9}{'spread':>9}{'bound':>8}  repeats")
    for one in found:
        repeats = " ".join(f"{median_s * 1e3:.0f}" for median_s in one.medians_s)
        verdict = "fitted" if one.strategy == BASE else "holds" if one.holds else "FAILS"
        lines.append(
            f"  {one.strategy:<10}{one.predicted_s * 1e3:>8.1f} ms{one.measured_s * 1e3:>8.1f} ms"
            f"{one.error_frac:>+9.1%}{one.spread_frac:>9.1%}{one.bound_frac:>8.1%}  {repeats} ms  {verdict}"
        )
    for order in orders(found):
        said = {None: "not told apart", True: "right", False: "WRONG"}[order.is_right]
        lines.append(f"  {order.fast} before {order.slow}: {said}")
    return lines


def main(rounds: str = "3", *models: str) -> None:
    for model in models or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            runs = recordings(Path(folder), model, int(rounds))
            print("\n".join(report(model, *verdicts(runs))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
