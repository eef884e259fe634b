"""On which days the events of an xplane file's lines start: kept while a line is gone through, so that nobody sorts it.

Parts of a plane that lie more than a day apart are two recordings, or damage; see :func:`time_bounds.strays`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from meshscope.readers.time_bounds import DAY_NS

Ints = npt.NDArray[np.int64]
Day = tuple[int, int, int]
"""The first and the last time of those that lie within a day of each other, and how many there are."""

_EARLIEST, _LATEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
ALWAYS = _EARLIEST, _LATEST
"""Bounds in which every time lies."""

_DAY_PS = DAY_NS * 1000


class Days:
    """Of one line, in ps from its beginning. Days begin where the line does."""

    def __init__(self) -> None:
        self._days: dict[int, Day] = {}

    def add(self, offset_ps: Ints) -> None:
        """Some starts more, shape (n,), n ≥ 1, in any order."""
        first, last = int(offset_ps.min()), int(offset_ps.max())
        if first // _DAY_PS == last // _DAY_PS:
            self._count(first // _DAY_PS, (first, last, len(offset_ps)))
            return
        ordered = np.sort(offset_ps)
        day = ordered // _DAY_PS
        begins = np.flatnonzero(np.diff(day, prepend=day[0] - 1))
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(day)], strict=True):
            self._count(int(day[begin]), (int(ordered[begin]), int(ordered[end - 1]), end - begin))

    def _count(self, day: int, found: Day) -> None:
        first, last, count = self._days.get(day, (_LATEST, _EARLIEST, 0))
        self._days[day] = min(first, found[0]), max(last, found[1]), count + found[2]

    def since(self, timestamp_ns: int) -> Iterator[Day]:
        """Each day with an event, in ns, where the line begins at ``timestamp_ns``."""
        for first, last, count in self._days.values():
            yield timestamp_ns + first // 1000, timestamp_ns + last // 1000, count

    def bounds(self, timestamp_ns: int) -> tuple[int, int]:
        """The first start and the last, in ns, where the line begins at ``timestamp_ns``."""
        days = list(self.since(timestamp_ns))
        return min(first for first, _, _ in days), max(last for _, last, _ in days)


def largest(days: Iterable[Day]) -> tuple[tuple[int, int], int]:
    """Bounds of the part with most events, and how many lie outside; everything where no part is the largest.

    Days of several lines may overlap. Parts lie more than a day apart.
    """
    parts: list[Day] = []
    for first, last, count in sorted(days):
        if parts and first - parts[-1][1] <= DAY_NS:
            parts[-1] = parts[-1][0], max(parts[-1][1], last), parts[-1][2] + count
        else:
            parts.append((first, last, count))
    ranked = sorted(parts, key=lambda part: part[2])
    if len(ranked) > 1 and ranked[-1][2] == ranked[-2][2]:
        return ALWAYS, 0
    return ranked[-1][:2], sum(part[2] for part in ranked[:-1])
