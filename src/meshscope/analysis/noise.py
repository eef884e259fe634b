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

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_SEED = 20_240_229  # The same steps give the same interval, today and in a test.
_REPLICAS = (100, 1000)
_DRAWS = 10_000_000
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


def block_length(values: npt.NDArray[np.generic]) -> int:
    """How many neighbours to draw together, from the series' autocorrelation; at most a third of it.

    The rule of Politis and White (2004) with the correction of Patton, Politis and White (2009) for the circular block
    bootstrap, with their flat-top window. For a median pass which values lie above it: the median moves as the mean of
    those does, and outliers do not hide what follows what.
    """
    x = np.asarray(values, dtype=np.float64)
    count = len(x)
    if count < 4 or float(np.ptp(x)) == 0.0:
        return 1
    most_lags = min(count - 1, math.ceil(math.sqrt(count)) + max(5, math.ceil(math.sqrt(math.log10(count)))))
    covariance = _autocovariance(x, most_lags)
    lags = min(2 * _last_correlated(covariance / covariance[0], count), most_lags)
    if not lags:
        return 1
    k = np.arange(1, lags + 1)
    window = np.clip(2 * (1 - k / lags), 0, 1)
    slope = 2 * float((window * k * covariance[1 : lags + 1]).sum())
    density = float(covariance[0] + 2 * (window * covariance[1 : lags + 1]).sum())
    if density <= 0:
        return 1
    wanted = float((1.5 * slope**2 / density**2 * count) ** (1 / 3))
    return max(1, min(math.ceil(wanted), count // 3))


def _autocovariance(x: Floats, lags: int) -> Floats:
    centred = x - x.mean()
    return np.array([float((centred[: len(x) - k] * centred[k:]).sum()) / len(x) for k in range(lags + 1)])


def _last_correlated(correlation: Floats, count: int) -> int:
    """The lag after which several in a row are no more than chance would give."""
    in_a_row = max(5, math.ceil(math.sqrt(math.log10(count))))
    is_chance = np.abs(correlation[1:]) < 2 * math.sqrt(math.log10(count) / count)
    for lag in range(len(is_chance) - in_a_row + 1):
        if is_chance[lag : lag + in_a_row].all():
            return lag
    return len(is_chance)


def resampled_medians(values: Floats, block: int) -> Floats:
    """Medians of series drawn anew in circular blocks of ``block`` neighbours."""
    count = len(values)
    replicas = min(max(_DRAWS // max(count, 1), _REPLICAS[0]), _REPLICAS[1])
    rng = np.random.default_rng(_SEED)
    found = [np.median(values[rows], axis=1) for rows in _blocks(rng, count, block, replicas)]
    return np.concatenate(found)


def _blocks(rng: np.random.Generator, count: int, block: int, replicas: int) -> list[Rows]:
    """Row numbers of the replicas, shape (some, count), in portions that fit in memory."""
    portion = max(1, 2_000_000 // count)
    starts = rng.integers(0, count, (replicas, -(-count // block)))
    ahead = np.arange(block)
    return [
        ((starts[at : at + portion, :, None] + ahead) % count).reshape(-1, starts.shape[1] * block)[:, :count]
        for at in range(0, replicas, portion)
    ]


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
