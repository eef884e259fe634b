"""Figures that add up over windows, and windows narrowed to what was asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from meshscope.analysis.device_steps import device_step_ns
from meshscope.analysis.explaining.evidence import labels, whole
from meshscope.analysis.explaining.figure import Figure, Value, total
from meshscope.analysis.explaining.number import Asked
from meshscope.intervals import Intervals, union
from meshscope.spans import Window

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Told = TypeVar("Told")


def asked_of(asked: Asked) -> tuple[Window, ...]:
    """The windows of the ranks that were asked about, those that hold the step where one was."""
    return tuple(
        window
        for window in asked.run.windows
        if asked.has(window.rank) and (asked.step is None or asked.step in window.steps)
    )


def bounds_of(asked: Asked, window: Window) -> Intervals:
    """The step that was asked about; all of the window where none was."""
    if asked.step is None:
        return whole(window)
    start_ns, end_ns = device_step_ns(window)[window.steps.index(asked.step)].tolist()
    return union(np.array([start_ns], dtype=np.int64), np.array([end_ns], dtype=np.int64))


def is_within(asked: Asked, window: Window, time_ns: Ints) -> Flags:
    """Which moments of a device lie in the step that was asked about; all where none was; shape of ``time_ns``."""
    if asked.step is None:
        return np.ones(len(time_ns), dtype=bool)
    start_ns, end_ns = device_step_ns(window)[window.steps.index(asked.step)].tolist()
    found: Flags = (time_ns >= start_ns) & (time_ns < end_ns)
    return found


def is_called_within(asked: Asked, window: Window, time_ns: Ints) -> Flags:
    """The same of moments of the host, by its own marks of the step."""
    if asked.step is None:
        return np.ones(len(time_ns), dtype=bool)
    start_ns, end_ns = window.step_ns[window.steps.index(asked.step)].tolist()
    found: Flags = (time_ns >= start_ns) & (time_ns < end_ns)
    return found


def over_windows(
    name: str, found: Sequence[tuple[Window, Told]], value: Callable[[Told], Value], unit: str = "ns"
) -> Figure:
    """What each window has, added up; nothing of no window."""
    if not found:
        return Figure(name, 0, unit)
    names = labels([window for window, _ in found])
    leaves = [Figure(called, value(told), unit) for called, (_, told) in zip(names, found, strict=True)]
    return total(name, leaves, unit)


def is_all(asked: Asked) -> bool:
    """Whether nothing narrowed the question, so that the answer is the one of ``analyze --json``."""
    return asked.rank is None and asked.step is None


def in_steps(windows: Sequence[Window], starts: Sequence[Ints]) -> str:
    """How many of some moments lie in which complete steps: ``12 in step 3, 12 in step 4, 1 in no whole step``."""
    counts: dict[int, int] = {}
    outside = 0
    for window, start_ns in zip(windows, starts, strict=True):
        inside = 0
        for step, (low, high) in zip(window.steps, device_step_ns(window).tolist(), strict=True):
            count = int(((start_ns >= low) & (start_ns < high)).sum())
            counts[step] = counts.get(step, 0) + count
            inside += count
        outside += len(start_ns) - inside
    return _counted_in(counts, outside)


_MOST_STEPS = 6


def _counted_in(counts: dict[int, int], outside: int) -> str:
    if not counts:
        return ""
    told = [f"{counts[step]} in step {step}" for step in sorted(counts)]
    if len(told) > _MOST_STEPS:
        rest = sum(counts[step] for step in sorted(counts)[_MOST_STEPS:])
        told = [*told[:_MOST_STEPS], f"{rest} in {len(told) - _MOST_STEPS} more steps"]
    return ", ".join([*told, *([f"{outside} in no whole step"] if outside else [])])
