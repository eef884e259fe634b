"""When collectives of one device transfer side by side, and so share its links."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meshscope.analysis.parts import per_window
from meshscope.analysis.waiting import WindowWaits
from meshscope.intervals import union
from meshscope.spans import Kind, Window

Ints = npt.NDArray[np.int64]


def beside_ns_of(window: Window, row: Ints, alike: Ints, waits: WindowWaits | None) -> int:
    """How long the collectives on some rows transfer while another does that is none of ``alike``.

    A collective transfers once it does not wait for peers: by ``waits``, or by what the trace records of waiting where
    that is None.
    """
    everything = _side_by_side(window)
    if not len(everything):
        return 0
    spans = window.spans
    start_ns, end_ns = spans.start_ns[everything], spans.end_ns[everything]
    if waits is not None:
        start_ns[np.searchsorted(everything, waits.row)] += waits.wait_ns
    mine, others = np.isin(everything, row), ~np.isin(everything, alike)
    both = union(start_ns[mine], end_ns[mine]) & union(start_ns[others], end_ns[others])
    return (both if waits is not None else both - spans.busy(Kind.WAIT)).total_ns


@per_window
def _side_by_side(window: Window) -> Ints:
    """The rows of a window's collectives; none where no two of them run at once."""
    spans = window.spans
    rows = np.flatnonzero(spans.kind == Kind.COLLECTIVE)
    order = np.argsort(spans.start_ns[rows], kind="stable")
    start_ns, end_ns = spans.start_ns[rows][order], spans.end_ns[rows][order]
    has_any = bool((start_ns[1:] < np.maximum.accumulate(end_ns)[:-1]).any())
    return rows if has_any else rows[:0]
