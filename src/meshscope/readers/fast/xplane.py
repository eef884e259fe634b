"""An xplane file whose lines are walked over instead of built from messages; what is odd goes to protobuf.

A plane's names and stats are decoded by protobuf either way: only lines and their events, which are nearly all of a
file, stay as they lie. Both ways give the same planes of every file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.readers.fast import proto_scan
from meshscope.readers.fast.interning import nothing_interned, with_room
from meshscope.readers.fast.words import PAD
from meshscope.readers.tables import Table
from meshscope.readers.xplane_messages import message
from meshscope.readers.xplane_space import Plane, RawLine, Told, text

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Content = npt.NDArray[np.uint8]

_LINES, _EVENTS = 3 << 3 | 2, 4 << 3 | 2
_ROOM = 1 << 14
_MOST_GAPS = 1 << 12


class Odd(Exception):  # noqa: N818  # no error: protobuf reads it
    """What only protobuf can read, or refuse."""


def plane(part: memoryview) -> Plane | None:
    """A plane from its bytes; None when it has to be decoded by protobuf. Raises DecodeError."""
    content = np.frombuffer(b"".join((part, PAD)), dtype=np.uint8)
    try:
        shell, firsts, lasts = _without(content, 0, len(part), _LINES)
        bounds = zip(firsts.tolist(), lasts.tolist(), strict=True)
        scanned = tuple(_line(content, first, last) for first, last in bounds)
    except Odd:
        return None
    return Plane(message("Plane").FromString(shell), scanned=scanned)


def _line(content: Content, first: int, last: int) -> RawLine:
    shell, firsts, lasts = _without(content, first, last, _EVENTS)
    if not proto_scan.are_plain(content, firsts, lasts):
        raise Odd
    line = message("Line").FromString(shell)
    return RawLine(text(line.name), line.timestamp_ns, Scanned(content, firsts, lasts))


def _without(content: Content, at: int, end: int, key: int) -> tuple[bytes, Places, Places]:
    """A message without the fields of one key, and where the contents of those begin and end, shape (n,)."""
    none = np.empty(0, dtype=np.int32)
    count, gap = proto_scan.listed(content, at, end, key, none, none, np.empty((2, 0), dtype=np.int64))
    if count < 0 or gap > _MOST_GAPS:
        raise Odd
    firsts, lasts = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int32)
    gaps = np.empty((2, gap), dtype=np.int64)
    proto_scan.listed(content, at, end, key, firsts, lasts, gaps)
    return b"".join(content[first:last].tobytes() for first, last in gaps.T.tolist()), firsts, lasts


class Scanned:
    """Events of a line as they lie in their plane."""

    def __init__(self, content: Content, firsts: Places, lasts: Places) -> None:
        self._place = content, firsts, lasts

    def __len__(self) -> int:
        return len(self._place[1])

    def __getitem__(self, row: int, /) -> Any:
        content, firsts, lasts = self._place
        return message("Event").FromString(content[firsts[row] : lasts[row]].tobytes())

    def take(self, rows: Ints) -> Scanned:
        content, firsts, lasts = self._place
        return Scanned(content, firsts[rows], lasts[rows])

    def columns(self) -> tuple[Ints, Ints, Ints]:
        metadata, offset, duration = (np.empty(len(self), dtype=np.int64) for _ in range(3))
        proto_scan.columns(*self._place, metadata, offset, duration)
        return metadata, offset, duration

    def carrying(self, rows: Ints, stat: int) -> npt.NDArray[np.bool_]:
        found = np.empty(len(rows), dtype=np.bool_)
        proto_scan.carrying(*self._place, rows, stat, found)
        return found

    def stats(self, plane: Plane, rows: Ints, stat: int) -> Told:
        table = nothing_interned()
        codes = np.empty(len(rows), dtype=np.int32)
        _, firsts, lasts = self._place
        for at in range(0, len(rows), _ROOM):
            some = rows[at : at + _ROOM]
            table = with_room(table, len(some), int((lasts[some] - firsts[some]).sum()))
            proto_scan.stats(*self._place, some, stat, table, codes[at : at + _ROOM])
        decoded = map(message("Stat").FromString, table.texts(0, int(table.used[0])))
        values = Table()
        # One number can be written in several ways.
        numbers = values.codes((type(value), value) for value in map(plane.value, decoded))
        return Told(
            np.append(numbers, np.int32(-1))[codes], tuple(value for _, value in values)
        )  # −1, not carried, finds the last
