"""What every reader does alike once it has rows: steps, extents, and when a time is a wall time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind
from meshscope.spans import SpanTable

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

EARLIEST_UNIX_NS = 946_684_800_000_000_000  # the year 2000: anything less is no wall time
NO_ABSOLUTE_TIME = ("t0_unix_ns", "the trace does not say when it was made, so its first event is at 0")
WORK = (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)


def step_bounds(marks: Iterable[tuple[int, int, int]]) -> tuple[Ints, Ints]:
    """Step numbers (k,) in order and their bounds (k, 2), from marks (number, start, end); marks of one step join."""
    bounds: dict[int, tuple[int, int]] = {}
    for step, start_ns, end_ns in marks:
        old = bounds.get(step, (start_ns, end_ns))
        bounds[step] = (min(old[0], start_ns), max(old[1], end_ns))
    ordered = sorted(bounds)
    step_ns = np.array([bounds[step] for step in ordered], dtype=np.int64).reshape(-1, 2)
    return np.array(ordered, dtype=np.int64), step_ns


def step_of(start_ns: Ints, steps: Ints, step_ns: Ints) -> Small:
    """The step in which each row starts, −1 outside all of them; shape of ``start_ns``."""
    if not len(steps):
        return np.full(len(start_ns), -1, dtype=np.int32)
    order = np.argsort(step_ns[:, 0], kind="stable")
    at = np.searchsorted(step_ns[order, 0], start_ns, side="right") - 1
    chosen = order[np.maximum(at, 0)]
    is_inside = (at >= 0) & (start_ns < step_ns[chosen, 1])
    return np.where(is_inside, steps[chosen], -1).astype(np.int32)


def extent(spans: SpanTable) -> tuple[int, int]:
    """From the first device event's start to the last one's end; of all rows where there is none."""
    rows = np.isin(spans.kind, WORK)
    rows = rows if rows.any() else np.ones(len(spans), dtype=bool)
    return (int(spans.start_ns[rows].min()), int(spans.end_ns[rows].max())) if rows.any() else (0, 0)
