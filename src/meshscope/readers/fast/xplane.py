"""Pieces of an xplane file's lines, walked over instead of built from messages; what is odd goes to protobuf.

Events stay as they lie. Both ways give the same pieces with the same numbers, of every file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from meshscope.readers import xplane_events
from meshscope.readers.fast import proto_scan
from meshscope.readers.fast.interning import nothing_interned, with_room
from meshscope.readers.fast.words import PAD
from meshscope.readers.tables import Table
from meshscope.readers.xplane_events import Reading, Told, Walked
from meshscope.readers.xplane_messages import message

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Content = npt.NDArray[np.uint8]

_MOST_GAPS = 1 << 10


def walk(piece: bytes) -> Walked:
    """See :data:`meshscope.readers.xplane_events.Walk`. Raises DecodeError for what only protobuf can read, too."""
    content = np.frombuffer(b"".join((piece, PAD)), dtype=np.uint8)
    most = min(xplane_events.MOST_EVENTS, len(piece) // 2)
    places = np.empty((2, most), dtype=np.int32)
    columns = np.empty((3, most), dtype=np.int64)
    gaps = np.empty((2, _MOST_GAPS), dtype=np.int32)
    used, count, gap = proto_scan.events(content, len(piece), places, columns, gaps)
    if used < 0:
        raise DecodeError("odd")
    firsts, lasts = places[:, :count].copy()
    events = Scanned(content, firsts, lasts, columns[:, :count].copy())
    return Walked(used, events, [(first, last) for first, last in gaps[:, :gap].T.tolist()])


class Scanned:
    """Events of a line as they lie in a piece of it."""

    def __init__(self, content: Content, firsts: Places, lasts: Places, columns: Ints) -> None:
        self._place = content, firsts, lasts
        self._columns = columns

    def __len__(self) -> int:
        return len(self._place[1])

    def take(self, rows: Ints) -> Scanned:
        content, firsts, lasts = self._place
        return Scanned(content, firsts[rows], lasts[rows], self._columns[:, rows])

    def columns(self) -> tuple[Ints, Ints, Ints]:
        metadata, offset, duration = self._columns
        return metadata, offset, duration

    def carrying(self, rows: Ints, stat: int) -> npt.NDArray[np.bool_]:
        found = np.empty(len(rows), dtype=np.bool_)
        proto_scan.carrying(*self._place, rows, stat, found)
        return found

    def stats(self, plane: Reading, rows: Ints, stat: int) -> Told:
        codes = np.empty(len(rows), dtype=np.int32)
        _, firsts, lasts = self._place
        table = with_room(nothing_interned(), len(rows), int((lasts[rows] - firsts[rows]).sum()))
        proto_scan.stats(*self._place, rows, stat, table, codes)
        decoded: Any = map(message("Stat").FromString, table.texts(0, int(table.used[0])))
        values = Table()
        # One number can be written in several ways.
        numbers = values.codes((type(value), value) for value in map(plane.value, decoded))
        return Told(
            np.append(numbers, np.int32(-1))[codes], tuple(value for _, value in values)
        )  # −1, not carried, finds the last
