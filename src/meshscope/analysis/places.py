"""From where on the host each piece of a torch rank's work was asked for: on which thread, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.idle import WORK
from meshscope.analysis.nesting import nest
from meshscope.analysis.parts import per_window
from meshscope.spans import Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Places:
    """k pieces of work as columns of shape (k,), by ``row`` of the window's spans.

    ``lane`` and ``time_ns`` say where on the host: the beginning of the launch call on a GPU, the operator itself on a
    CPU rank, the call that a gloo span carries out. ``lane`` is −1 where that is not in the trace.
    """

    row: Ints
    lane: Ints
    time_ns: Ints

    @property
    def is_known(self) -> Flags:
        return self.lane >= 0


@per_window
def places(window: Window) -> Places:
    """Of all device work; all unknown where the framework is not torch."""
    spans = window.spans
    row = np.flatnonzero(np.isin(spans.kind, WORK))
    by_itself = (spans.kind[row] == Kind.COMPUTE) & (window.device_kind == "cpu")
    source = np.where(by_itself, row, spans.link[row])
    is_known = (source >= 0) & (window.framework == "torch")
    lane = np.where(is_known, spans.lane[source], -1).astype(np.int64)
    return Places(row, lane, np.where(is_known, spans.start_ns[source], 0))


def around(spans: SpanTable, marks: Flags, here: Places) -> Ints:
    """The innermost of the marked rows around each place on its own thread, −1 where there is none; shape (k,)."""
    rows = np.flatnonzero(marks)
    found = nest(spans.lane[rows], spans.start_ns[rows], spans.end_ns[rows]).innermost(here.lane, here.time_ns)
    return np.where(found >= 0, rows[np.maximum(found, 0)], -1) if len(rows) else found


def beside(spans: SpanTable, marks: Flags, here: Places) -> Ints:
    """The same on any thread: a thread that waits for another's work is around it. The own thread comes first."""
    found = around(spans, marks, here)
    rows = np.flatnonzero(marks)
    for lane in np.unique(spans.lane[rows]).tolist():
        rest = np.flatnonzero((found < 0) & here.is_known)
        if not len(rest):
            break
        elsewhere = Places(here.row[rest], np.full(len(rest), lane, dtype=np.int64), here.time_ns[rest])
        found[rest] = around(spans, marks & (spans.lane == lane), elsewhere)
    return found
