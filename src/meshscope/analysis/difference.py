"""How much longer the steps of B are than those of A, and how sure that is.

**Noise within a run** is a block bootstrap of the median (``analysis.noise``), and the drift of the run's quarters.

**Noise between runs** is what no run sees of itself. The same program, started again on the same quiet machine, ran
each step 18 % longer or shorter from start to end, with an interquartile range of 4 % within each run: where pages
come to lie, which core a neighbour heats. So every run is given a standard deviation of ``BETWEEN_LOG`` on top, as
if it had been seen on ``PRIOR_RUNS`` runs; repeats of the same thing add what they themselves show, and with enough of
them their own scatter is what counts. The interval is that of Student's t at ``CONFIDENCE``: 99 %, since a false alarm
in one of twenty pairs is the most that is borne and the prior is no more than a prior.

**What a busy machine adds** is measured, not modelled: steps during which other programs used more than
``QUIET_CORES`` are left out where both sides have ``FEWEST`` others, and without these nothing is said of the length.

**Waiting** does not stretch with the speed of a core as computing does, and its share of a step is the same from run to
run. The share in which a step waits for its batch, and that in which no core does anything, is compared by itself,
with the far smaller ``BETWEEN_WAIT_FRAC``: if it grew beyond that and the steps did become longer, the steps are
slower, although their length alone would not yet show it.

Tried on series recorded on two shared cores (torch on one device, DDP and pmap on two ranks), any two runs of the same
thing: no false alarm in 172 pairs; a sleep of a fifth of a step called slower in 97 to 100 % of them, in the batch or
elsewhere; every step a fifth longer without waiting, which is what the machine itself does, in at most 20 % of single
pairs and in 70 to 95 % with three repeats on each side. ``tests/benchmarks/compare_pairs.py`` repeats it on a machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from meshscope.analysis.figures import Figures
from meshscope.analysis.noise import Level, block_length, level, resampled_medians, t_quantile

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.99
PRIOR_RUNS = 8
BETWEEN_LOG = {"cpu": 0.05, "gpu": 0.015, "tpu": 0.015}
BETWEEN_WAIT_FRAC = {"data": 0.01, "idle": 0.015}
QUIET_CORES = 0.3
FEWEST = 12


@dataclass(frozen=True)
class Estimate:
    """``change`` of B against A with its interval, as fractions of A; NaN where not known."""

    a: float
    b: float
    change: float
    low: float
    high: float

    @property
    def resolution(self) -> float:
        """The smallest growth that would have shown, as a fraction."""
        return (1 + self.high) / (1 + self.change) - 1

    @property
    def direction(self) -> int:
        """1 when B is larger beyond its noise, −1 when smaller, 0 when neither shows."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0


@dataclass(frozen=True, eq=False)
class Side:
    """The runs of one side (repeats of the same thing), and which of their measured steps are compared."""

    runs: tuple[Figures, ...]
    keep: tuple[npt.NDArray[np.bool_], ...]

    @property
    def kept(self) -> int:
        return sum(int(keep.sum()) for keep in self.keep)

    @property
    def measured(self) -> int:
        return sum(len(run.step_ns) for run in self.runs)

    def step_ns(self) -> list[Floats]:
        return [np.asarray(run.step_ns, dtype=np.float64)[keep] for run, keep in zip(self.runs, self.keep, strict=True)]

    def data_wait_ns(self) -> list[Floats]:
        """Per run; NaN where it was not recorded."""
        waits = [np.asarray(run.data_wait_ns, dtype=np.float64) for run in self.runs]
        return [np.where(w >= 0, w, math.nan)[keep] for w, keep in zip(waits, self.keep, strict=True)]

    def idle_ns(self) -> list[Floats]:
        """Time of a step in which no core did anything: idle cores' time, spread over all cores."""
        shares = [np.asarray(run.idle_cores) / (run.cores or math.nan) for run in self.runs]
        return [share[keep] * ns for share, keep, ns in zip(shares, self.keep, self.step_ns(), strict=True)]


def sides(a: Sequence[Figures], b: Sequence[Figures]) -> tuple[Side, Side, bool]:
    """Both sides with the steps that are compared, and whether those are quiet ones only."""
    quiet = _side(a, is_quiet=True), _side(b, is_quiet=True)
    if all(len(keep) == 0 or keep.sum() >= FEWEST for side in quiet for keep in side.keep):
        return *quiet, any(side.kept < side.measured for side in quiet)
    return _side(a, is_quiet=False), _side(b, is_quiet=False), False


def _side(runs: Sequence[Figures], *, is_quiet: bool) -> Side:
    return Side(tuple(runs), tuple(_quiet(run) if is_quiet else np.ones(len(run.step_ns), bool) for run in runs))


def _quiet(run: Figures) -> npt.NDArray[np.bool_]:
    """Steps without others on the cores; all where that matters not (accelerators) or is not known at all."""
    others = np.asarray(run.others_cores, dtype=np.float64)
    if run.device_kind != "cpu" or not np.isfinite(others).any():
        return np.ones(len(run.step_ns), dtype=bool)
    return others <= QUIET_CORES


def crowded(side: Side) -> float:
    """The cores that other programs used during the compared steps, in the run where it was most; NaN unknown."""
    means = [
        float(np.nanmean(others[keep]))
        for run, keep in zip(side.runs, side.keep, strict=True)
        if np.isfinite(others := np.asarray(run.others_cores, dtype=np.float64))[keep].any()
    ]
    return max(means, default=math.nan)


def step_time(a: Side, b: Side) -> Estimate:
    """Of the medians, in ns; the change is one of logarithms, so that halves and doubles weigh alike."""
    levels = [[level(values) for values in side.step_ns()] for side in (a, b)]
    logs = [[math.log(found.median) for found in side] for side in levels]
    means = [float(np.mean(side)) for side in logs]
    floor = BETWEEN_LOG.get(a.runs[0].device_kind, max(BETWEEN_LOG.values()))
    half = _half_width(logs, [_own(side) for side in levels], floor)
    change = means[1] - means[0]
    return Estimate(
        a=math.exp(means[0]),
        b=math.exp(means[1]),
        change=math.expm1(change),
        low=math.expm1(change - half),
        high=math.expm1(change + half),
    )


def _own(levels: list[Level]) -> float:
    """The variance that the runs of a side see of themselves, each."""
    return float(np.mean([found.se_log**2 + found.drift_log**2 for found in levels]))


def _half_width(values: list[list[float]], own: list[float], floor: float) -> float:
    """Of the difference of two means: a prior of ``floor``, worth ``PRIOR_RUNS``, and the scatter of repeats."""
    scatter = sum(float(np.var(side)) * len(side) for side in values)
    freedom = sum(len(side) - 1 for side in values)
    variance = sum(
        (PRIOR_RUNS * (floor**2 + mine) + scatter) / (PRIOR_RUNS + freedom) / len(side)
        for side, mine in zip(values, own, strict=True)
    )
    return t_quantile(CONFIDENCE, PRIOR_RUNS + freedom) * math.sqrt(variance)


def waiting(a: Side, b: Side) -> dict[str, Estimate]:
    """Time per step in ns spent waiting for the ``data``, and with the cores ``idle``.

    The change is of its share of the step, in points: a crowded machine stretches waits and steps alike.
    """
    found = {}
    for name, of in (("data", Side.data_wait_ns), ("idle", Side.idle_ns)):
        estimate = _waiting(a, b, of, BETWEEN_WAIT_FRAC[name])
        if estimate is not None:
            found[name] = estimate
    return found


def _waiting(a: Side, b: Side, of: Callable[[Side], list[Floats]], floor: float) -> Estimate | None:
    series = [of(a), of(b)]
    if not all(np.isfinite(values).all() and len(values) for side in series for values in side):
        return None
    shares = [
        [wait / ns for wait, ns in zip(waits, side.step_ns(), strict=True)]
        for waits, side in zip(series, (a, b), strict=True)
    ]
    medians = [[float(np.median(share)) for share in side] for side in shares]
    means = [float(np.mean(side)) for side in medians]
    half = _half_width(medians, [float(np.mean([_median_variance(share) for share in side])) for side in shares], floor)
    change = means[1] - means[0]
    old_ns, new_ns = (float(np.mean([np.median(values) for values in side])) for side in series)
    return Estimate(old_ns, new_ns, change, change - half, change + half)


def _median_variance(values: Floats) -> float:
    return _variance_of(np.ascontiguousarray(values, dtype=np.float64).tobytes())


@lru_cache(maxsize=256)  # As of the step times: a live screen asks again of runs that have long ended.
def _variance_of(content: bytes) -> float:
    values = np.frombuffer(content, dtype=np.float64)
    return float(resampled_medians(values, block_length(values > np.median(values))).var())
