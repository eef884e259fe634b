"""Protobuf walked over in place: planes, lines, events and stats of an xplane file, without building messages.

What is ODD (groups, fields that overrun, numbers that no writer would make) is left to the protobuf library. Content
ends in :data:`words.PAD`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meshscope.fast import compiled
from meshscope.readers.fast.interning import Codes, Interned, intern
from meshscope.readers.fast.words import Bytes, Longs, byte

Places = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

ODD = -1
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_LONGEST_HEAD = 20  # a key and a number
_LARGEST_KEY = 1 << 28  # of four bytes; a message has fields below 16

# Keys of fields: the number, then the wire type in three bits.
_METADATA, _OFFSET, _DURATION, _STATS = 1 << 3, 2 << 3, 3 << 3, 4 << 3 | _LENGTH
_STAT_METADATA = 1 << 3
_EVENTS = 4 << 3 | _LENGTH
_VALUES = (2 << 3 | _FIXED64, 3 << 3, 4 << 3, 5 << 3 | _LENGTH, 6 << 3 | _LENGTH, 7 << 3)


@compiled
def varint(content: Bytes, at: int, end: int) -> tuple[int, int]:
    """A number and what follows it; ODD in place of the latter."""
    value = shift = 0
    while at < end and shift < 63:
        sign = byte(content, at)
        at += 1
        value |= (sign & 127) << shift
        if sign < 128:
            return value, at
        shift += 7
    if at < end and shift == 63 and byte(content, at) <= 1:  # the tenth byte holds the sign
        return value | (byte(content, at) << 63), at + 1
    return 0, ODD


@compiled
def _key(content: Bytes, at: int, end: int) -> tuple[int, int]:
    """A field's key and what follows it; ODD in place of the latter."""
    key, after = varint(content, at, end)
    is_plain = after > 0 and 8 <= key < _LARGEST_KEY and after - at <= 4
    return key, (after if is_plain else ODD)


@compiled
def _content(content: Bytes, at: int, end: int, wire: int) -> tuple[int, int]:
    """Where a field's content begins and ends; ODD for the end of one that overruns."""
    if wire == _VARINT:
        after = varint(content, at, end)[1]
        return at, after
    if wire == _LENGTH:
        size, at = varint(content, at, end)
        return at, (at + size if at > 0 and 0 <= size <= end - at else ODD)
    size = 8 if wire == _FIXED64 else 4 if wire == _FIXED32 else end + 1
    return at, (at + size if size <= end - at else ODD)


@compiled
def events(content: Bytes, end: int, places: Places, columns: Longs, gaps: Places) -> tuple[int, int, int]:
    """The whole fields at the beginning of a piece of a line: the bytes they take, how many events and other fields.

    Row by row, ``places`` bounds the contents of the events and ``gaps`` all else; ``columns`` has each event's
    metadata id, offset and duration, 0 where one is not given. Ends where ``places`` is full. ODD for the bytes where
    anything is.
    """
    at = count = gap = 0
    while at < end and count < places.shape[1]:
        key, first, last = _field(content, at, end)
        if last > end:
            break
        if last < 0 or gap == gaps.shape[1]:
            return ODD, count, gap
        if key == _EVENTS:
            if not _event(content, first, last, count, columns):
                return ODD, count, gap
            places[0, count], places[1, count] = first, last
            count += 1
        else:
            gaps[0, gap], gaps[1, gap] = at, last
            gap += 1
        at = last
    return at, count, gap


@compiled
def _field(content: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """The key of the field at ``at``, and the bounds of its content: beyond the end where it is cut, ODD where it is.

    What does not hold together near the end may only be cut; the next piece tells.
    """
    if at + 2 <= end and byte(content, at) == _EVENTS and byte(content, at + 1) < 128:
        return _EVENTS, at + 2, at + 2 + byte(content, at + 1)
    odd = end + 1 if end - at < _LONGEST_HEAD else ODD
    key, first = _key(content, at, end)
    if first < 0:
        return key, at, odd
    if key & 7 == _LENGTH:
        size, first = varint(content, first, end)
        return key, first, (odd if first < 0 else first + size if size >= 0 else ODD)
    last = _content(content, first, end, key & 7)[1]
    return key, first, (odd if last < 0 else last)


@compiled
def _event(content: Bytes, at: int, end: int, row: int, columns: Longs) -> bool:
    """Takes the numbers of an event; whether it and all its stats are protobuf."""
    columns[0, row] = columns[1, row] = columns[2, row] = 0
    while at < end:
        key, first = _key(content, at, end)
        if first < 0:
            return False
        if key == _METADATA or key == _OFFSET or key == _DURATION:
            value, at = varint(content, first, end)
            if at < 0:
                return False
            columns[(key >> 3) - 1, row] = value
            continue
        first, at = _content(content, first, end, key & 7)
        if at < 0 or (key == _STATS and not _is_plain_stat(content, first, at)):
            return False
    return True


@compiled
def _is_plain_stat(content: Bytes, at: int, end: int) -> bool:
    while at < end:
        key, at = _key(content, at, end)
        if at < 0:
            return False
        at = _content(content, at, end, key & 7)[1]
        if at < 0:
            return False
    return True


@compiled
def carrying(content: Bytes, firsts: Places, lasts: Places, rows: Longs, wanted: int, found: Flags) -> None:
    """Which of some plain events carry a stat."""
    for place in range(len(rows)):
        found[place] = _stat(content, firsts[rows[place]], lasts[rows[place]], wanted)[1] >= 0


@compiled
def stats(
    content: Bytes, firsts: Places, lasts: Places, rows: Longs, wanted: int, table: Interned, codes: Codes
) -> None:
    """The number in ``table`` of the value of a stat, key and all; of the last one where an event carries several.

    ODD where an event carries none. There is room for all of them.
    """
    for place in range(len(rows)):
        at, end = _stat(content, firsts[rows[place]], lasts[rows[place]], wanted)
        codes[place] = ODD
        if end >= 0:
            first, last = _value(content, at, end)
            codes[place] = intern(table, content, first, last - first)


@compiled
def _stat(content: Bytes, at: int, end: int, wanted: int) -> tuple[int, int]:
    """The bounds of the last stat of an event that has a metadata id; ODD for both without one."""
    begin = last = ODD
    while at < end:
        key, at = _key(content, at, end)
        first, at = _content(content, at, end, key & 7)
        if key == _STATS and _stat_metadata(content, first, at) == wanted:
            begin, last = first, at
    return begin, last


@compiled
def _stat_metadata(content: Bytes, at: int, end: int) -> int:
    number = 0
    while at < end:
        key, at = _key(content, at, end)
        if key == _STAT_METADATA:
            number, at = varint(content, at, end)
        else:
            at = _content(content, at, end, key & 7)[1]
    return number


@compiled
def _value(content: Bytes, at: int, end: int) -> tuple[int, int]:
    """The bounds of the field that holds a stat's value, the last of several; nothing where there is none."""
    begin = last = at
    while at < end:
        place = at
        key, at = _key(content, at, end)
        at = _content(content, at, end, key & 7)[1]
        if key in _VALUES:
            begin, last = place, at
    return begin, last
