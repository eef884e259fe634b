"""Stretches of a device without work, each cut at the launch of the work that ends it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.intervals import Intervals
from meshscope.spans import SpanTable

Ints = npt.NDArray[np.int64]


def started(spans: SpanTable, work: Ints, at_ns: Ints) -> Ints:
    """The row that starts at each of some moments: that of the latest launch where there are several."""
    rows = work[np.lexsort((spans.link[work], spans.start_ns[work]))]
    return rows[np.searchsorted(spans.start_ns[rows], at_ns, side="right") - 1]


@dataclass(frozen=True, eq=False)
class Parts:
    """Each gap [start, end) cut at the launch of what ends it: host late, in the launch, queued. Shape (gaps,)."""

    row: Ints
    thread: Ints
    start_ns: Ints
    launch_start_ns: Ints
    launch_end_ns: Ints
    end_ns: Ints
    is_known: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, spans: SpanTable, gaps: Intervals, row: Ints) -> Parts:
        link = spans.link[row]
        # A launch that begins after its kernel contradicts itself: two clocks, or a number used twice.
        is_known = (link >= 0) & (spans.start_ns[link] <= spans.start_ns[row])
        start_ns, end_ns = gaps.start_ns, gaps.end_ns
        return cls(
            row=row,
            thread=np.where(is_known, spans.lane[link], -1).astype(np.int64),
            start_ns=start_ns,
            launch_start_ns=np.where(is_known, np.clip(spans.start_ns[link], start_ns, end_ns), start_ns),
            launch_end_ns=np.where(is_known, np.clip(spans.end_ns[link], start_ns, end_ns), start_ns),
            end_ns=end_ns,
            is_known=is_known,
        )
