"""What calls that may run side by side take of the time on the wall, each for itself.

Two calls of a millisecond at once take one millisecond of a step, not two. So each moment is divided among the calls
that run then: the parts of all calls add up to the time in which any of them runs, never to more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.waiting import WindowWaits, records_waits
from meshscope.intervals import EMPTY, Intervals, union
from meshscope.spans import Kind, Window

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Moved:
    """k calls whose waiting is known, as columns of shape (k,), by ``row`` of their window's spans.

    ``wall_ns`` is each call's part of the time in which they transfer, ``exposed_ns`` of that beside no compute. The
    first add up to the time in which any of them transfers, the second to that in which one does and nothing computes.
    """

    row: Ints
    size_bytes: Ints
    wall_ns: Floats
    exposed_ns: Floats


def moved(window: Window, rows: Ints, waits: WindowWaits | None) -> Moved:
    """Of some of a window's collectives; those whose waiting is not known are left out."""
    spans = window.spans
    if records_waits(window):
        mine = (spans.kind == Kind.WAIT) & np.isin(spans.collective, np.unique(spans.collective[rows]))
        waited = union(spans.start_ns[mine], spans.end_ns[mine])
        return _moved(window, rows, spans.start_ns[rows], waited)
    if waits is None:
        return _moved(window, rows[:0], rows[:0], EMPTY)
    is_known = np.isin(waits.row, rows)
    return _moved(window, waits.row[is_known], (waits.start_ns + waits.wait_ns)[is_known], EMPTY)


def _moved(window: Window, row: Ints, start_ns: Ints, waited: Intervals) -> Moved:
    spans = window.spans
    end_ns, compute = spans.end_ns[row], spans.busy(Kind.COMPUTE)
    return Moved(
        row=row,
        size_bytes=spans.size_bytes[row],
        wall_ns=parts(start_ns, end_ns, waited),
        exposed_ns=parts(start_ns, end_ns, waited | compute),
    )


def parts(start_ns: Ints, end_ns: Ints, without: Intervals) -> Floats:
    """How long each of k intervals is outside ``without``, each moment divided by how many of them it is in."""
    bounds = np.unique(np.concatenate((start_ns, end_ns, without.start_ns, without.end_ns)))
    if len(bounds) < 2:
        return np.zeros(len(start_ns))
    at = bounds[:-1]
    running = np.searchsorted(np.sort(start_ns), at, side="right") - np.searchsorted(np.sort(end_ns), at, side="right")
    is_out = np.searchsorted(without.start_ns, at, side="right") > np.searchsorted(without.end_ns, at, side="right")
    each = np.where((running > 0) & ~is_out, np.diff(bounds) / np.maximum(running, 1), 0.0)
    until = np.concatenate(([0.0], np.cumsum(each)))
    found: Floats = until[np.searchsorted(bounds, end_ns)] - until[np.searchsorted(bounds, start_ns)]
    return found
