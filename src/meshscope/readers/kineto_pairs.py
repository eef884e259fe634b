"""Events that a file writes as a beginning and an end (``ph: B`` and ``E``, in 2021's bare lists) as complete ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from meshscope.readers.decimals import RATHER_NS

Ints = npt.NDArray[np.int64]

NO_END = "a beginning without an end"
NO_BEGINNING = "an end without a beginning"


class Half(Protocol):
    """One half of an event."""

    @property
    def ph(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def pid(self) -> object: ...
    @property
    def tid(self) -> object: ...


def pairs(halves: Sequence[Half], time_ns: Ints) -> tuple[list[int], list[int], dict[str, int]]:
    """Beginnings and their ends as numbers into ``halves``, and what was left over, by reason.

    ``time_ns`` has shape (len(halves),). Per thread an end closes the innermost event that is open, or the innermost
    of its name where it has one. Halves without a time pair with nothing.
    """
    opened: defaultdict[tuple[object, object], list[int]] = defaultdict(list)
    begins: list[int] = []
    ends: list[int] = []
    alone = 0
    timed = np.flatnonzero(time_ns > RATHER_NS)
    for row in timed[np.argsort(time_ns[timed], kind="stable")].tolist():
        half = halves[row]
        waiting = opened[half.pid, half.tid]
        if half.ph == "B":
            waiting.append(row)
            continue
        place = _place(halves, waiting, half.name)
        if place is None:
            alone += 1
        else:
            begins.append(waiting.pop(place))
            ends.append(row)
    without_time = len(halves) - len(timed)
    unclosed = sum(map(len, opened.values()))
    left = {NO_END: unclosed, NO_BEGINNING: alone, "no time": without_time}
    return begins, ends, {reason: count for reason, count in left.items() if count}


def _place(halves: Sequence[Half], waiting: list[int], name: str | None) -> int | None:
    """The place among the open beginnings of the one that an end named ``name`` closes."""
    for place in range(len(waiting) - 1, max(-1, len(waiting) - 65), -1):
        if not name or halves[waiting[place]].name == name:
            return place
    return None
