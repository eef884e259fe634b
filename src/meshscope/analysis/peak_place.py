"""The step and the phase in which a rank's memory peaked.

The step is the one after which the allocator reported the highest peak (it counts anew in every step); where nobody
reported one, that of the most that a profiled window traced. The phase needs such a window over that step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshscope.analysis.host_activity import Flags, host_named
from meshscope.analysis.phases import BACKWARD, FORWARD, IN_BACKWARD, IN_OPTIMIZER, OPTIMIZER, OTHER, before_backward
from meshscope.run import Run
from meshscope.spans import Window

COUNTER, TRACED = "the allocator's peak in each step", "the profiled windows that trace memory"
NO_WINDOW = "no profiled window that traces memory covers the step of the peak"


@dataclass(frozen=True)
class PeakPlace:
    """``phase`` is "" where it is not known. ``seen_by`` is COUNTER or TRACED, which knows only what was traced."""

    rank: int
    step: int
    phase: str
    seen_by: str


@dataclass(frozen=True)
class _Traced:
    step: int
    phase: str
    most_bytes: int


def peak_places(run: Run) -> tuple[PeakPlace, ...]:
    """By rank, those of which the step is known."""
    ranks = sorted({*np.unique(run.steps.rank).tolist(), *(window.rank for window in run.windows)})
    found = [_place(run, rank) for rank in ranks]
    return tuple(place for place in found if place is not None)


def _place(run: Run, rank: int) -> PeakPlace | None:
    traced = [one for window in run.windows if window.rank == rank for one in _steps(window)]
    table = run.steps.where((run.steps.rank == rank) & (run.steps.peak_bytes >= 0))
    if len(table):
        step = int(table.step[table.peak_bytes.argmax()])
        phase = next((one.phase for one in traced if one.step == step), "")
        return PeakPlace(rank, step, phase, COUNTER)
    if not traced:
        return None
    fullest = max(traced, key=lambda one: one.most_bytes)
    return PeakPlace(rank, fullest.step, fullest.phase, TRACED)


def _steps(window: Window) -> list[_Traced]:
    """The most that was held in each whole step of a window that traced memory."""
    traced = window.allocations
    if traced is None or not len(traced.total_bytes):
        return []
    found = []
    for step, (start_ns, end_ns) in zip(window.steps, window.step_ns.tolist(), strict=False):
        first, end = np.searchsorted(traced.time_ns, [start_ns, end_ns])
        if end > first:
            at = int(first + traced.total_bytes[first:end].argmax())
            found.append(_Traced(step, _phase(window, int(traced.time_ns[at])), int(traced.total_bytes[at])))
    return found


def _phase(window: Window, t_ns: int) -> str:
    """What the host was in; "" where the trace marks no phase."""
    spans = window.spans
    backward, stepping = host_named(spans, IN_BACKWARD.search), host_named(spans, IN_OPTIMIZER.search)
    if not backward.any() and not stepping.any():
        return ""
    if _covers(window, backward, t_ns):
        return BACKWARD
    if _covers(window, stepping, t_ns):
        return OPTIMIZER
    return FORWARD if before_backward(window, np.array([t_ns], dtype=np.int64))[0] else OTHER


def _covers(window: Window, rows: Flags, t_ns: int) -> bool:
    spans = window.spans
    return bool((rows & (spans.start_ns <= t_ns) & (spans.end_ns >= t_ns)).any())
