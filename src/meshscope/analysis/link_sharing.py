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
    if not _has_several_at_once(window):
        return 0
    spans = window.spans
    start_ns, others = spans.start_ns.copy(), spans.kind == Kind.COLLECTIVE
    if waits is not None:
        start_ns[waits.row] += waits.wait_ns
    others[alike] = False
    both = union(start_ns[row], spans.end_ns[row]) & union(start_ns[others], spans.end_ns[others])
    return (both if waits is not None else both - spans.busy(Kind.WAIT)).total_ns


@per_window
def _has_several_at_once(window: Window) -> bool:
    spans = window.spans
    rows = spans.kind == Kind.COLLECTIVE
    order = np.argsort(spans.start_ns[rows], kind="stable")
    start_ns, end_ns = spans.start_ns[rows][order], spans.end_ns[rows][order]
    return bool((start_ns[1:] < np.maximum.accumulate(end_ns)[:-1]).any())
