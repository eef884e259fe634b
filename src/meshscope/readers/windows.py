"""What every reader does alike once it has rows: steps, extents, and when a time is a wall time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind, is_any
from meshscope.readers.growing import room

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

EARLIEST_UNIX_NS = 946_684_800_000_000_000  # the year 2000: anything less is no wall time
NO_ABSOLUTE_TIME = ("t0_unix_ns", "the trace does not say when it was made, so its first event is at 0")
_CHUNK = 1 << 18
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
        return np.broadcast_to(np.int32(-1), len(start_ns))
    order = np.argsort(step_ns[:, 0], kind="stable")
    found = room(len(start_ns), np.int32)
    for first in range(0, len(start_ns), _CHUNK):
        some_ns = start_ns[first : first + _CHUNK]
        at = np.searchsorted(step_ns[order, 0], some_ns, side="right") - 1
        chosen = order[np.maximum(at, 0)]
        is_inside = (at >= 0) & (some_ns < step_ns[chosen, 1])
        found[first : first + _CHUNK] = np.where(is_inside, steps[chosen], -1)
    return found


class Timed(Protocol):
    """Rows that have a start, an end and a kind: a table of spans, or what becomes one."""

    @property
    def start_ns(self) -> Ints: ...
    @property
    def end_ns(self) -> Ints: ...
    @property
    def kind(self) -> npt.NDArray[np.uint8]: ...


def extent(spans: Timed) -> tuple[int, int]:
    """From the first device event's start to the last one's end; of all rows where there is none."""
    if not len(spans.start_ns):
        return 0, 0
    rows = is_any(spans.kind, WORK)
    work = rows if rows.any() else np.ones(len(rows), dtype=bool)
    bounds = np.iinfo(np.int64)
    return int(spans.start_ns.min(where=work, initial=bounds.max)), int(
        spans.end_ns.max(where=work, initial=bounds.min)
    )
