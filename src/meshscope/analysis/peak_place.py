"""The step and the phase in which a rank's memory peaked.

The step is the first after which the allocator reported the highest peak (torch's counter is reset before every step,
XLA's never); where nobody reported one, that of the most that a profiled window traced. The phase needs such a window
over that step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshscope.analysis.host_activity import Flags, host_named
from meshscope.analysis.parts import per_window
from meshscope.analysis.phase_names import BACKWARD, FORWARD, OPTIMIZER, OTHER
from meshscope.analysis.phases import IN_BACKWARD, IN_OPTIMIZER, before_backward
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
    windows: dict[int, list[Window]] = {}
    for window in run.windows:
        windows.setdefault(window.rank, []).append(window)
    ranks = sorted({*np.unique(run.steps.rank).tolist(), *windows})
    found = [_place(run, rank, windows.get(rank, [])) for rank in ranks]
    return tuple(place for place in found if place is not None)


def _place(run: Run, rank: int, windows: list[Window]) -> PeakPlace | None:
    traced = [one for window in windows for one in _steps(window)]
    table = run.steps.of(rank)
    is_told = table.peak_bytes >= 0
    if is_told.any():
        first = int(table.peak_bytes[is_told].argmax())
        if run.experiment.framework == "jax" and first == 0:
            return None  # XLA's counter is never reset: this may have been before the first step
        step = int(table.step[is_told][first])
        phase = next((one.phase for one in traced if one.step == step), "")
        return PeakPlace(rank, step, phase, COUNTER)
    if not traced:
        return None
    fullest = max(traced, key=lambda one: one.most_bytes)
    return PeakPlace(rank, fullest.step, fullest.phase, TRACED)


@per_window
def _steps(window: Window) -> tuple[_Traced, ...]:
    """The most that was held in each whole step of a window that traced memory."""
    traced = window.allocations
    if traced is None or not len(traced.total_bytes):
        return ()
    found: list[tuple[int, int, int]] = []
    for step, (start_ns, end_ns) in zip(window.steps, window.step_ns.tolist(), strict=False):
        first, end = np.searchsorted(traced.time_ns, [start_ns, end_ns]).tolist()
        first = max(first - 1, 0)  # what a step begins with is what the last change before it left
        if end > first:
            at = first + int(traced.total_bytes[first:end].argmax())
            found.append((step, max(int(traced.time_ns[at]), start_ns), int(traced.total_bytes[at])))
    phases = _phases(window, [t_ns for _, t_ns, _ in found])
    return tuple(_Traced(step, phase, most) for (step, _, most), phase in zip(found, phases, strict=True))


def _phases(window: Window, times_ns: list[int]) -> list[str]:
    """What the host was in at each moment; "" where the trace marks no phase."""
    spans = window.spans
    backward, stepping = host_named(spans, IN_BACKWARD.search), host_named(spans, IN_OPTIMIZER.search)
    if not backward.any() and not stepping.any():
        return [""] * len(times_ns)
    is_before = before_backward(window, np.array(times_ns, dtype=np.int64)).tolist()
    return [
        BACKWARD if _covers(window, backward, t_ns)
        else OPTIMIZER if _covers(window, stepping, t_ns)
        else FORWARD if is_forward else OTHER
        for t_ns, is_forward in zip(times_ns, is_before, strict=True)
    ]  # fmt: skip


def _covers(window: Window, rows: Flags, t_ns: int) -> bool:
    spans = window.spans
    return bool((rows & (spans.start_ns <= t_ns) & (spans.end_ns > t_ns)).any())
