"""Events of an xplane line, as protobuf decodes them: a piece of a line at a time, so that a line may be of any size.

:mod:`meshscope.readers.fast.xplane` gives the same pieces with the same numbers, walked over in machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from meshscope.readers.tables import Table
from meshscope.readers.xplane_messages import message
from meshscope.readers.xplane_wire import events

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

_NUMBERS = attrgetter("metadata_id", "offset_ps", "duration_ps")
MOST_EVENTS = 1 << 15
"""A piece holds no more events than these."""


class Told(NamedTuple):
    """One value for each of some rows: ``values[codes]``, −1 for none. Values stand in order of first appearance."""

    codes: Codes
    values: tuple[Any, ...]


class Reading(Protocol):
    """How a plane reads a stat: :meth:`meshscope.readers.xplane_space.Plane.value`."""

    def value(self, stat: Any) -> Any: ...


class Events(Protocol):
    """n events of one line."""

    def __len__(self) -> int: ...

    def take(self, rows: Ints) -> Events:
        """The events of some numbers."""

    def columns(self) -> tuple[Ints, Ints, Ints]:
        """``metadata_id``, ``offset_ps`` and ``duration_ps``, each of shape (n,)."""

    def carrying(self, rows: Ints, stat: int) -> Mask:
        """Which rows carry a stat."""

    def stats(self, plane: Reading, rows: Ints, stat: int) -> Told:
        """The value of a stat in each row; the last where a row carries several."""


class Walked(NamedTuple):
    """The first ``used_bytes`` of a piece of a line: their events, and where other fields lie between them."""

    used_bytes: int
    events: Events
    others: list[tuple[int, int]]


Walk = Callable[[bytes], Walked]
"""Takes whole fields from the beginning of a piece; none where the first is not all there. Raises DecodeError."""


class Messages:
    """Events as protobuf decoded them."""

    def __init__(self, decoded: Any) -> None:
        self._events = decoded

    def __len__(self) -> int:
        return len(self._events)

    def take(self, rows: Ints) -> Messages:
        return Messages([self._events[row] for row in rows.tolist()])

    def columns(self) -> tuple[Ints, Ints, Ints]:
        return self._columns

    @cached_property
    def _columns(self) -> tuple[Ints, Ints, Ints]:
        numbers = chain.from_iterable(map(_NUMBERS, self._events))
        metadata, offset, duration = np.fromiter(numbers, np.int64, 3 * len(self._events)).reshape(-1, 3).T.copy()
        return metadata, offset, duration

    def carrying(self, rows: Ints, stat: int) -> Mask:
        found = (any(one.metadata_id == stat for one in self._events[row].stats) for row in rows.tolist())
        return np.fromiter(found, dtype=np.bool_, count=len(rows))

    def stats(self, plane: Reading, rows: Ints, stat: int) -> Told:
        table = Table()
        codes = np.full(len(rows), -1, dtype=np.int32)
        for place, row in enumerate(rows.tolist()):
            carried = [one for one in self._events[row].stats if one.metadata_id == stat]
            if carried:
                value = plane.value(carried[-1])
                codes[place] = table[type(value), value]  # 1 and 1.0 are two
        return Told(codes, tuple(value for _, value in table))


def walk(piece: bytes) -> Walked:
    """See :data:`Walk`."""
    try:
        used, _, others = events(piece, MOST_EVENTS)
    except ValueError as error:
        raise DecodeError("no field") from error
    return Walked(used, Messages(message("Line").FromString(piece[:used]).events), others)
