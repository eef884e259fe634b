"""The stretch of time that is on the screen, in whole nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

_MARGIN_FRAC = 0.02
_ROUND = (1, 2, 5)


@dataclass(frozen=True)
class Viewport:
    """``[start_ns, stop_ns)`` in ``columns`` cells, within ``[first_ns, last_ns)`` of a run and a little beside it.

    A column is never shorter than a nanosecond.
    """

    first_ns: int
    last_ns: int
    start_ns: int
    stop_ns: int
    columns: int

    @property
    def span_ns(self) -> int:
        return self.stop_ns - self.start_ns

    @cached_property
    def edges(self) -> npt.NDArray[np.int64]:
        """Where the columns begin, and where the last one ends; shape (columns + 1,)."""
        # As ``edge`` has it, without a product that int64 does not hold.
        whole, rest = divmod(self.span_ns, self.columns)
        column = np.arange(self.columns + 1, dtype=np.int64)
        return self.start_ns + column * whole + column * rest // self.columns

    def edge(self, column: int) -> int:
        """Where a column begins."""
        return self.start_ns + column * self.span_ns // self.columns

    def column(self, time_ns: int) -> int:
        """The column that a time is in; below 0 or beyond ``columns`` where it is not on the screen."""
        # The inverse of ``edge``, whose edges are rounded down.
        return ((time_ns - self.start_ns + 1) * self.columns - 1) // self.span_ns

    def sized(self, columns: int) -> Viewport:
        """The same stretch in another number of cells, longer where it would be too short for them."""
        return replace(self, columns=columns).showing(self.start_ns, self.stop_ns)

    def showing(self, start_ns: int, stop_ns: int) -> Viewport:
        """Another stretch, made to fit: neither shorter than a nanosecond a column nor beyond what there is."""
        margin = max(int((self.last_ns - self.first_ns) * _MARGIN_FRAC), self.columns)
        low, high = self.first_ns - margin, self.last_ns + margin
        span = min(max(stop_ns - start_ns, self.columns), high - low)
        start = start_ns + (stop_ns - start_ns - span) // 2
        start = min(max(start, low), high - span)
        return replace(self, start_ns=start, stop_ns=start + span)

    def moved(self, by_ns: int) -> Viewport:
        return self.showing(self.start_ns + by_ns, self.stop_ns + by_ns)

    def zoomed(self, factor: float, around_ns: int) -> Viewport:
        """``factor`` times as long, with ``around_ns`` in the column where it is."""
        span = max(round(self.span_ns * factor), 1)
        before = round((around_ns - self.start_ns) * (span / self.span_ns))
        return self.showing(around_ns - before, around_ns - before + span)

    def holding(self, time_ns: int) -> Viewport:
        """As it is where the time is on the screen; else moved so that it stands in the middle."""
        if self.start_ns <= time_ns < self.stop_ns:
            return self
        return self.showing(time_ns - self.span_ns // 2, time_ns - self.span_ns // 2 + self.span_ns)

    def tick_ns(self, least_columns: int) -> int:
        """The shortest round distance that is at least so many columns wide."""
        least = self.span_ns * least_columns / self.columns
        size = 1
        while True:
            for step in _ROUND:
                if step * size >= least:
                    return step * size
            size *= 10


def whole(first_ns: int, last_ns: int, columns: int) -> Viewport:
    """Everything there is."""
    last_ns = max(last_ns, first_ns + 1)
    return Viewport(first_ns, last_ns, first_ns, last_ns, columns).showing(first_ns, last_ns)
