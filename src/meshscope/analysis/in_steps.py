"""Which pieces of work belong to complete steps: those that begin in one. What a mean step has of anything rests on it.

Steps are the device's (:mod:`meshscope.analysis.device_steps`), and so are the moments that are asked about. A piece
that runs over the end of a step counts whole in that step, and not in the next: so a call counts once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from meshscope.analysis.device_steps import device_step_ns
from meshscope.intervals import Intervals, union
from meshscope.run import Run
from meshscope.spans import Window

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def steps_of(window: Window) -> Intervals:
    """The time of the window's complete steps where its work runs."""
    bounds = device_step_ns(window)
    return union(bounds[:, 0], bounds[:, 1])


def begun_in_steps(window: Window, time_ns: Ints) -> Flags:
    """Whether each moment lies in a complete step of the window; shape of ``time_ns``."""
    steps = steps_of(window)
    if not len(steps):
        return np.zeros(len(time_ns), dtype=bool)
    at = np.searchsorted(steps.start_ns, time_ns, side="right") - 1
    found: Flags = (at >= 0) & (time_ns < steps.end_ns[np.maximum(at, 0)])
    return found


def working(run: Run) -> tuple[Window, ...]:
    """The windows with device work."""
    return tuple(window for window in run.windows if window.device_kind != "none")


def rank_steps(windows: Iterable[Window]) -> int:
    """How many pairs of a rank and one of its complete steps there are: what a mean step is a mean over."""
    return sum(len(window.steps) for window in windows)
