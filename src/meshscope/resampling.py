"""The circular block bootstrap of a median: series drawn anew in blocks of neighbours, as long as they must be."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_SEED = 20_240_229  # The same steps give the same interval, today and in a test.
_REPLICAS = (100, 1000)
_DRAWS = 10_000_000


def median_interval_frac(values: Floats, confidence: float = 0.95) -> float:
    """How wide the interval of a median is, from low to high, as a share of the median.

    ``values`` are positive, in the order of their steps, shape (n,), n ≥ 1; the interval lies between percentiles of
    the medians of resampled series.
    """
    logs = np.log(values)
    medians = resampled_medians(logs, block_length(logs > np.median(logs)))
    low, high = np.quantile(medians, [(1 - confidence) / 2, (1 + confidence) / 2])
    middle = float(np.median(logs))
    return math.exp(float(high) - middle) - math.exp(float(low) - middle)


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
