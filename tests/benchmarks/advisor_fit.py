"""Fits the few constants of the time model to published runs: robust, with priors, never a constant per run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np

from meshscope.advisor.cells import text
from meshscope.advisor.constants import speed
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure
from meshscope.advisor.multipliers import NEUTRAL
from meshscope.advisor.plausibility import is_impossible, measured_step_s
from meshscope.advisor.predictions import widened
from meshscope.advisor.published import Published, published
from meshscope.advisor.stacks import of
from meshscope.advisor.timing import forecast_of

# How far a factor may lie from 1 before its prior pulls (a standard deviation, in logarithms).
WIDTHS = {
    "all.jitter_frac": 0.5,
    "all.contention": 0.1,
    "all.tail_s": 0.4,
    "all.matmul": 0.2,
    "all.attention": 0.2,
    "all.memory_bound": 0.3,
    "all.collective": 0.15,
    "all.rowwise": 0.3,
    "all.mixture": 0.3,
    "all.ring": 0.15,
    "device.*.matmul": 0.1,
    "device.*.narrow": 0.2,
    "device.*.attention": 0.3,
    "device.*.memory_bound": 0.2,
    "stack.*.matmul": 0.05,
    "stack.*.attention": 0.2,
    "stack.*.memory_bound": 0.2,
    "stack.*.narrow": 0.1,
    "stack.*.collective": 0.12,
    "stack.*.tail_s": 0.5,
}
STEP = 0.05
FARTHEST = 0.4
"""How far one round moves a constant, in logarithms: slopes hold near by only."""
NOISE = 0.05
"""What stays unexplained of a run at best."""


@dataclass(frozen=True)
class Case:
    asked: Published
    measured_s: float
    split: str

    @property
    def names(self) -> list[str]:
        """The constants that it depends on."""
        stack, device = of(self.asked.candidate.stack).family, self.asked.cluster.device.family
        return [name.replace("device.*", f"device.{device}").replace("stack.*", f"stack.{stack}") for name in WIDTHS]

    @property
    def matters(self) -> set[str]:
        """The constants that can change it at all."""
        laid = self.asked.candidate
        found = {"attention", "memory_bound", "tail_s"}
        is_narrow = laid.numerics.compute in ("fp8", "fp4")
        found |= {"narrow", "matmul"} if is_narrow else {"matmul"}
        found |= {"rowwise"} if is_narrow and "row" in laid.numerics.name else set()
        found |= {"mixture"} if self.asked.architecture.is_mixture else set()
        found |= {"ring"} if laid.context > 1 else set()
        return found | ({"collective", "jitter_frac", "contention"} if laid.devices > 1 else set())

    def predicted_s(self, fitted: Mapping[str, float]) -> float:
        return self.predicted(fitted).value

    def predicted(self, fitted: Mapping[str, float]) -> Figure:
        asked = self.asked
        known = speed(of(asked.candidate.stack).family, asked.cluster.device.family, fitted)
        found = forecast_of(asked.architecture, asked.candidate, asked.cluster, NEUTRAL, known)
        return widened(found.step_s, asked.assumed)


def cases(rows: Sequence[Mapping[str, str]], splits: Sequence[str]) -> list[Case]:
    found = []
    for row in rows:
        if text(row, "suggested_split") not in splits or not measured_step_s(row) or is_impossible(row):
            continue
        if text(row, "quality_flag") == "suspect":
            # What it multiplied in is not known.
            continue
        try:
            case = Case(published(row), measured_step_s(row), text(row, "suggested_split"))
            case.predicted_s({})
        except NotCovered:
            continue
        found.append(case)
    return found


def width(name: str) -> float:
    where, _, rest = name.partition(".")
    return WIDTHS.get(name) or WIDTHS[f"{where}.*.{rest.rpartition('.')[2]}"]


@dataclass
class Linear:
    """Residuals (log predicted over measured) and their slopes at some constants."""

    names: list[str]
    residuals: np.ndarray
    slopes: np.ndarray
    weights: np.ndarray


def linear(found: Sequence[Case], fitted: Mapping[str, float]) -> Linear:
    names = sorted({name for case in found for name in case.names})
    column = {name: number for number, name in enumerate(names)}
    residuals = np.zeros(len(found))
    slopes = np.zeros((len(found), len(names)))
    for number, case in enumerate(found):
        base = math.log(case.predicted_s(fitted))
        residuals[number] = base - math.log(case.measured_s)
        done: dict[str, float] = {}
        for name in case.names:
            constant = name.rpartition(".")[2]
            if constant not in case.matters:
                continue
            if constant not in done:
                moved = dict(fitted) | {name: fitted.get(name, 1.0) * math.exp(STEP)}
                done[constant] = (math.log(case.predicted_s(moved)) - base) / STEP
            slopes[number, column[name]] = done[constant]
    return Linear(names, residuals, slopes, weights(found))


def weights(found: Sequence[Case]) -> np.ndarray:
    """A source with many rows counts as the square root of them."""
    many: dict[str, int] = {}
    for case in found:
        many[case.asked.source] = many.get(case.asked.source, 0) + 1
    return np.array([many[case.asked.source] ** -0.5 * 3 for case in found])


def solved(at: Linear, fitted: Mapping[str, float], rows: np.ndarray) -> dict[str, float]:
    """The constants that fit best, by iteratively reweighted least squares; ``rows`` says which count."""
    now = np.array([math.log(fitted.get(name, 1.0)) for name in at.names])
    pull = np.diag([1 / width(name) ** 2 for name in at.names])
    target, slopes, base = at.residuals[rows], at.slopes[rows], at.weights[rows]
    found = now.copy()
    for _ in range(20):
        left = target + slopes @ (found - now)
        robust = base / np.maximum(1.0, np.abs(left) / (1.5 * NOISE)) / NOISE**2
        weighted = slopes.T * robust
        found = np.linalg.solve(weighted @ slopes + pull, weighted @ (slopes @ now - target))
    kept = now + np.clip(found - now, -FARTHEST, FARTHEST)
    return {name: math.exp(value) for name, value in zip(at.names, kept, strict=True)}


def fit(
    found: Sequence[Case], rounds: int = 3, start: Mapping[str, float] | None = None
) -> tuple[dict[str, float], Linear]:
    fitted: dict[str, float] = dict(start or {})
    for _ in range(rounds):
        at = linear(found, fitted)
        fitted = solved(at, fitted, np.ones(len(found), bool))
    return fitted, linear(found, fitted)


@dataclass(frozen=True)
class LeftOut:
    """Predictions of a source's rows by ``fitted``: the constants that the other sources give."""

    fitted: dict[str, float]
    predicted: list[tuple[Case, Figure]]


def left_out(found: Sequence[Case], at: Linear, fitted: Mapping[str, float]) -> dict[str, LeftOut]:
    """Per source. A family of software or devices that only this source has goes without constants of its own."""
    answer = {}
    for source in dict.fromkeys(case.asked.source for case in found):
        others = [case for case in found if case.asked.source != source]
        taught = {name for case in others for name in case.names}
        every = solved(at, fitted, np.array([case.asked.source != source for case in found]))
        without = {name: value for name, value in every.items() if name in taught}
        own = [case for case in found if case.asked.source == source]
        answer[source] = LeftOut(without, [(case, case.predicted(without)) for case in own])
    return answer


HEAD = """Factors on the time model's priors (advisor/constants.py), fitted together to a table of published runs:
{sources}. Least squares of the logarithms of step times, robust (Huber), each source weighted by the root of its rows,
each factor held near 1 by a prior. "all" holds for every run, "device" for a family of devices, "stack" for a family of
software; none for a run, a row or a source."""


def written(fitted: Mapping[str, float], found: Sequence[Case]) -> str:
    """The file of constants."""
    many: dict[str, int] = {}
    for case in found:
        many[case.asked.source] = many.get(case.asked.source, 0) + 1
    sources = ", ".join(f"{name} ({count})" for name, count in many.items())
    lines = [f'"{name}" = {value:.4g}' for name, value in sorted(fitted.items()) if abs(math.log(value)) > 0.004]
    head = wrap(HEAD.format(sources=sources), 118, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    return "\n".join([*head, "", "[fitted]", *lines]) + "\n"
