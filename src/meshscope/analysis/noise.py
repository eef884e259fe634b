"""How far a median of steps can be trusted: block bootstrap within a run, drift within it, and a t quantile.

Steps are not independent: a neighbour on the machine, a clock that throttles or a garbage collector slows several in
a row. Resampling single steps would call the median far surer than it is, so blocks of neighbouring steps are drawn,
as long as the series itself says they must be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from meshscope.resampling import block_length, resampled_medians

__all__ = [
    "CHANCE",
    "FEWEST_PARTS",
    "Level",
    "block_length",
    "least_mean",
    "least_means",
    "level",
    "resampled_medians",
    "t_quantile",
]

Floats = npt.NDArray[np.float64]

_PARTS = 4

CHANCE = 0.01
FEWEST_PARTS = 3


@dataclass(frozen=True)
class Level:
    """The median of a run's steps. ``se_log`` is its standard error as a fraction (of the logarithm).

    ``drift_log`` is how much the medians of the four quarters of the run scatter beyond what their own steps
    explain, as a standard deviation of logarithms: what moves that slowly does not average out within a run.
    ``block`` is the length of a block in steps.
    """

    median: float
    count: int
    se_log: float
    drift_log: float
    block: int


def level(values: Floats) -> Level:
    """Of positive numbers in the order of their steps, shape (n,), n ≥ 1."""
    return _level(np.ascontiguousarray(values, dtype=np.float64).tobytes())


@lru_cache(maxsize=256)  # A live screen asks again every second, of runs that have long ended too.
def _level(content: bytes) -> Level:
    values = np.frombuffer(content, dtype=np.float64)
    logs = np.log(values)
    block = block_length(logs > np.median(logs))
    se_log = float(resampled_medians(logs, block).std())
    return Level(math.exp(float(np.median(logs))), len(values), se_log, _drift(logs, se_log), block)


def _drift(logs: Floats, se_log: float) -> float:
    parts = [part for part in np.array_split(logs, _PARTS) if len(part)]
    if len(parts) < _PARTS:
        return 0.0
    seen = float(np.var([np.median(part) for part in parts], ddof=1))
    return math.sqrt(max(0.0, seen - _PARTS * se_log**2))


def least_mean(values: Floats, *, parts: int, tries: int) -> float:
    """What the mean of values is at least: :func:`least_means` of one series."""
    return float(least_means(values[None, :], parts=parts, tries=tries)[0])


def least_means(values: Floats, *, parts: int, tries: int) -> Floats:
    """What the mean of each row is at least, in 99 of 100 cases, whichever of ``tries`` series was picked.

    Values in the order of their steps are cut into ``parts`` stretches, so that what slows several in a row counts
    once. −∞ where fewer than three stretches are left: two say nothing of how far they scatter.
    """
    rows, steps = values.shape
    parts = min(parts, steps)
    if parts < FEWEST_PARTS:
        return np.full(rows, -math.inf)
    starts = np.arange(parts) * (steps // parts) + np.minimum(np.arange(parts), steps % parts)
    means = np.add.reduceat(values, starts, axis=1) / np.diff(np.append(starts, steps))
    quantile = t_quantile(1 - 2 * CHANCE / tries, parts - 1)
    least: Floats = means.mean(axis=1) - quantile * means.std(axis=1, ddof=1) / math.sqrt(parts)
    return least


def t_quantile(confidence: float, freedom: float) -> float:
    """The two-sided quantile of Student's t: of an interval that covers with probability ``confidence``.

    Hill's expansion about the normal quantile (Abramowitz and Stegun 26.7.5); within 1 % for 4 degrees of freedom
    at 99 %, and better for more.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms))
