"""All collectives together: how long any of them ran, ran exposed, and ran exposed only to wait for a late rank.

Collectives that run side by side count once, so none of these is longer than the step. Sums over kinds can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.in_steps import steps_of
from meshscope.analysis.parts import per_pair, per_run
from meshscope.analysis.waiting import WindowWaits, records_waits, waiting
from meshscope.intervals import EMPTY, Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window


@dataclass(frozen=True)
class Exposure:
    """The mean complete step over ranks and steps; over whole windows, in the mean over them, where none is complete.

    ``exposed_ns`` of ``busy_ns`` have no compute beside them, and in ``waited_ns`` of those collectives do nothing but
    wait for a late rank, as far as that is known: 0 says that it is not, or that nobody does. In ``unsure_ns`` of them
    no collective is known to transfer, and one runs of which waiting cannot be told apart.
    """

    busy_ns: float = 0.0
    exposed_ns: float = 0.0
    waited_ns: float = 0.0
    unsure_ns: float = 0.0


@per_run
def exposure(run: Run) -> Exposure:
    """Zeros where no window has device work."""
    windows = [window for window in run.windows if window.device_kind != "none"]
    stepped = [window for window in windows if window.steps]
    count = sum(len(window.steps) for window in stepped) or len(windows)
    if not windows:
        return Exposure()
    waits = waiting(run).windows
    found = [_measured(window, waits.get(window)) for window in stepped or windows]
    return Exposure(*(sum(column) / count for column in zip(*found, strict=True)))


@per_pair
def _measured(window: Window, waits: WindowWaits | None) -> tuple[int, int, int, int]:
    """Of one window, summed over its steps: busy, exposed, waited, unsure."""
    spans = window.spans
    busy = spans.busy(Kind.COLLECTIVE)
    if window.steps:
        busy = busy & steps_of(window)
    exposed = busy - spans.busy(Kind.COMPUTE)
    waiting_, unsure_ = (found & exposed for found in (waited(window, waits), unsure(window, waits)))
    return busy.total_ns, exposed.total_ns, waiting_.total_ns, unsure_.total_ns


def waited(window: Window, waits: WindowWaits | None) -> Intervals:
    """When collectives wait for a late rank and none of them transfers: by the trace where it records that, else by
    matching. What could not be matched transfers, for all that is known."""
    spans = window.spans
    if records_waits(window):
        return _union(spans, (spans.kind == Kind.WAIT) & (spans.collective >= 0))
    if waits is None:
        return EMPTY
    unmatched = spans.kind == Kind.COLLECTIVE
    unmatched[waits.row] = False
    return waits.waiting(np.ones(len(waits.row), dtype=bool)) - _union(spans, unmatched)


def unsure(window: Window, waits: WindowWaits | None) -> Intervals:
    """When no collective is known to transfer, and one runs that may be waiting: it has no counterpart on every rank of
    its group, so that another rank may have come to it later. No time of it can be called the cost of communication."""
    if records_waits(window):
        return EMPTY
    busy = window.spans.busy(Kind.COLLECTIVE)
    if waits is None:
        return busy
    return busy - union(waits.start_ns + waits.wait_ns, waits.end_ns) - waited(window, waits)


def _union(spans: SpanTable, rows: npt.NDArray[np.bool_]) -> Intervals:
    return union(spans.start_ns[rows], spans.end_ns[rows])
