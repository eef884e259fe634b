"""When entries were written, in order: a thousand ranks write ten thousand a second."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

_ROOM = 1024


class Times:
    """Nanoseconds since the recording's start, sorted; they come in order but for those of writers that overlap."""

    def __init__(self) -> None:
        self._at_ns: npt.NDArray[np.int64] = np.empty(_ROOM, dtype=np.int64)
        self._count = 0

    def add(self, times_ns: Iterable[int]) -> None:
        """Only the end is sorted anew; room is made for twice as many when there is none left."""
        fresh = np.sort(np.fromiter(times_ns, dtype=np.int64))
        if not len(fresh):
            return
        cut = int(self._known.searchsorted(fresh[0]))
        tail = np.sort(np.concatenate((self._known[cut:], fresh)), kind="stable")
        self._count = cut + len(tail)
        if self._count > len(self._at_ns):
            grown = np.empty(2 * self._count, dtype=np.int64)
            grown[:cut] = self._at_ns[:cut]
            self._at_ns = grown
        self._at_ns[cut : self._count] = tail

    @property
    def _known(self) -> npt.NDArray[np.int64]:
        return self._at_ns[: self._count]

    def upto(self, now_ns: int) -> int:
        """How many were written at or before a time."""
        return int(self._known.searchsorted(now_ns, side="right"))

    def last_of(self, count: int) -> int:
        """When the last of the first so many was written; 0 where there is none."""
        return int(self._at_ns[count - 1]) if count else 0

    @property
    def newest_ns(self) -> int:
        return self.last_of(self._count)
