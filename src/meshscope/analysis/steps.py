"""Step time and throughput, from steps that no profiler touched; and what the profiler costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from meshscope.run import Run


@dataclass(frozen=True, eq=False)
class Steps:
    """A step of the run lasts from the earliest rank's start to the latest rank's end.

    ``measured`` counts the steps behind median, p95 and throughput: past warm-up (the first two, and any that
    compiled) and not profiled. Floats are NaN while there are none. ``*_spread`` is half the interquartile
    range. ``profiled_median_ns`` is over steps in active windows' neighbourhood (``is_profiled``);
    ``profiler_cost_frac`` is the time profiling added (profiled steps against the median, and stopping) as a share
    of the run's training time, ``profiled_slowdown_frac`` how much longer a profiled step is.
    ``number``/``duration_ns``/``is_profiled`` are the series to draw, one row per finished step.
    """

    count: int = 0
    planned: int = 0
    measured: int = 0
    median_ns: float = math.nan
    p95_ns: float = math.nan
    spread_ns: float = math.nan
    first_ns: float = math.nan
    compile_ns: float = math.nan
    compilations: int = 0
    recompilations: int = 0
    samples_per_s: float = math.nan
    samples_per_s_spread: float = math.nan
    tokens_per_s: float = math.nan
    data_wait_frac: float = math.nan
    loss_last: float = math.nan
    profiled: int = 0
    profiled_median_ns: float = math.nan
    profiled_slowdown_frac: float = math.nan
    profiler_cost_frac: float = math.nan
    number: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    duration_ns: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    is_profiled: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    loss: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0, np.float64))


def steps(run: Run) -> Steps:
    """All zero and NaN before the first step."""
    raise NotImplementedError
