"""Protobuf's wire format, walked over: fields of a message and, of a line, the events that lie in a piece of it.

Reference: https://protobuf.dev/programming-guides/encoding. Groups are passed over, as the protobuf library does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from meshscope.readers.damage import CUT_SHORT
from meshscope.readers.xplane_content import Bytes, Held

NO_FIELD = "bytes that are no protobuf field"

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = 0, 1, 2, 3, 4, 5
EVENTS = 4 << 3 | LENGTH
_SIZES = {FIXED64: 8, FIXED32: 4}
_DEEPEST = 100
_KEYS = range(8, 1 << 32)


class Field(NamedTuple):
    """A field of a message: where it begins, and where its content lies; ``last`` may be beyond the message."""

    key: int
    begin: int
    first: int
    last: int


def field(content: Bytes, at: int, end: int) -> Field:
    """The field at ``at``. Raises IndexError when the message ends first, ValueError for what is no field."""
    head = content.head(at, end)
    key, used = _varint(head, 0)
    if key not in _KEYS:
        raise ValueError(key)
    wire, first = key & 7, at + used
    if wire == LENGTH:
        size, used = _varint(head, used)
        return Field(key, at, at + used, at + used + size)
    if wire == VARINT:
        return Field(key, at, first, at + _varint(head, used)[1])
    if wire == GROUP:
        return Field(key, at, first, _after_group(content, first, end, key >> 3))
    if wire not in _SIZES:
        raise ValueError(wire)
    return Field(key, at, first, first + _SIZES[wire])


def fields(content: Bytes, at: int, end: int, dropped: Counter[str]) -> Iterator[tuple[Field, bool]]:
    """Each field that has a length, and whether it is all there; the last one may not be.

    Stops at bytes that are no field.
    """
    while at < end:
        try:
            found = field(content, at, end)
        except IndexError:
            dropped[CUT_SHORT] += 1
            return
        except ValueError:
            dropped[NO_FIELD] += 1
            return
        if found.last > end:
            dropped[CUT_SHORT] += 1
        if found.key & 7 == LENGTH:
            yield found, found.last <= end
        at = found.last


def events(piece: bytes, most: int) -> tuple[int, int, list[tuple[int, int]]]:
    """Of a piece of a line, from one of its fields on: how many bytes the whole fields take, with ``most`` events.

    With it, how many events those are, and where other fields lie. Raises ValueError for what is no field.
    """
    at = count = 0
    others: list[tuple[int, int]] = []
    held, end = Held(piece), len(piece)
    while at < end and count < most:
        at, count = _short_events(piece, at, count, most)
        try:
            found = field(held, at, end)
        except IndexError:
            break
        if found.last > end or count == most:
            break
        if found.key == EVENTS:
            count += 1
        else:
            others.append((at, found.last))
        at = found.last
    return at, count, others


def _short_events(piece: bytes, at: int, count: int, most: int) -> tuple[int, int]:
    """Passes over events of less than 128 bytes, the usual ones, as long as they are surely all there."""
    safe, key = len(piece) - 130, EVENTS
    for number in range(count, most):
        if at >= safe or piece[at] != key or (size := piece[at + 1]) > 127:
            return at, number
        at += size + 2
    return at, max(count, most)


def _after_group(content: Bytes, at: int, end: int, number: int) -> int:
    inside = [number]
    while inside:
        key, used = _varint(content.head(at, end), 0)
        if key & 7 == GROUP_END:
            if key >> 3 != inside.pop():
                raise ValueError(key)
            at += used
        elif key & 7 == GROUP and key in _KEYS:
            inside.append(key >> 3)
            if len(inside) > _DEEPEST:
                raise ValueError(len(inside))
            at += used
        else:
            at = field(content, at, end).last
        if at > end:
            raise IndexError(at)
    return at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a varint has at most ten bytes")
