"""Hosts that may be blocked on their device although the trace records no synchronization.

Loading a kernel for the first time, or freeing memory, can wait for the device inside an operator. All that shows is an
operator that stays open while the device is in a collective, and ends after it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.analysis.graph_device import Range
from meshscope.analysis.host_activity import cites
from meshscope.intervals import window
from meshscope.spans import Kind

Ints = npt.NDArray[np.int64]

LEAST_NS = 1_000_000
"""Operators between two launches hardly take so long by themselves."""

SURE_NS = 50_000
"""A host that goes on this soon after the end of a collective was waiting for it: by chance it would not."""

_HELD_FRAC, _BUSY_FRAC, _OUTSIDE_FRAC = 0.5, 0.1, 0.1


def held_by(here: Range, call: Ints, from_ns: Ints) -> Ints:
    """The collective that each of some launch calls may have waited for, as a row of the spans; −1 for none.

    Between ``from_ns``, when the host was seen last, and the call, an operator is open until the collective has ended,
    the device communicates for half of the time or more, and computes or copies for hardly any of it until that end.
    """
    spans = here.spans
    found = np.full(len(call), -1, dtype=np.int64)
    long = np.flatnonzero(spans.start_ns[call] - from_ns >= LEAST_NS)
    rows = np.flatnonzero(spans.kind == Kind.COLLECTIVE)
    if not len(long) or not len(rows):
        return found
    rows = rows[np.argsort(spans.end_ns[rows], kind="stable")]
    last = np.searchsorted(spans.end_ns[rows], spans.start_ns[call[long]], side="right") - 1
    communicating, working = spans.busy(Kind.COLLECTIVE), spans.busy(Kind.COMPUTE) | spans.busy(Kind.COPY)
    is_said = cites(spans, kinds.ANNOTATION) | cites(spans, kinds.FRAME)
    operator = np.flatnonzero((spans.kind == Kind.HOST) & ~is_said & (spans.end_ns - spans.start_ns >= LEAST_NS // 2))
    for at, row in zip(long[last >= 0].tolist(), rows[last[last >= 0]].tolist(), strict=True):
        start_ns, end_ns, call_ns = int(from_ns[at]), int(spans.end_ns[row]), int(spans.start_ns[call[at]])
        if (
            window(communicating, start_ns, end_ns).total_ns >= _HELD_FRAC * (call_ns - start_ns)
            and window(working, start_ns, end_ns).total_ns <= _BUSY_FRAC * (end_ns - start_ns)
            and (
                (spans.lane[operator] == spans.lane[call[at]])
                & (spans.start_ns[operator] <= start_ns + _OUTSIDE_FRAC * (call_ns - start_ns))
                & (spans.end_ns[operator] >= end_ns)
            ).any()
        ):
            found[at] = row
    return found
