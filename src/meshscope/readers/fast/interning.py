"""Texts as numbers, told apart by their bytes: a hash table in arrays, filled while scanning."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from meshscope.fast import compiled
from meshscope.readers.fast.words import Bytes, byte, hashed, is_same, signed

Codes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

_EMPTY = -1


class Interned(NamedTuple):
    """``slots`` hold numbers; of number n, ``hashes[n]`` and the ``sizes[n]`` bytes of ``pool`` from ``firsts[n]`` on.

    ``used`` counts numbers and bytes of the pool. The scanner fills what room there is and never looks for more:
    :func:`with_room` makes it beforehand.
    """

    slots: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.uint64]
    firsts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    pool: npt.NDArray[np.uint8]
    used: npt.NDArray[np.int64]

    def texts(self, first: int, last: int) -> list[bytes]:
        """The bytes of some numbers in a row."""
        if first == last:
            return []
        begin = int(self.firsts[first])
        pool = self.pool[begin : self.firsts[last - 1] + self.sizes[last - 1]].tobytes()
        begins = (self.firsts[first:last] - begin).tolist()
        return [pool[at : at + size] for at, size in zip(begins, self.sizes[first:last].tolist(), strict=True)]


def nothing_interned() -> Interned:
    """A table without room for anything."""
    none = np.empty(0, dtype=np.int64)
    return Interned(
        np.full(1, _EMPTY, np.int32), none.view(np.uint64), none, none, np.zeros(8, np.uint8), np.zeros(2, np.int64)
    )


def with_room(table: Interned, more: int, more_bytes: int) -> Interned:
    """The same table with room for so many more numbers and bytes."""
    count, size = table.used.tolist()
    has_numbers = 2 * (count + more) <= len(table.slots) and count + more <= len(table.sizes)
    if has_numbers and size + more_bytes + 8 <= len(table.pool):
        return table
    slots = table.slots
    if 2 * (count + more) > len(slots):
        slots = np.full(1 << (4 * (count + more)).bit_length(), _EMPTY, dtype=np.int32)
        _place(slots, table.hashes, count)
    return Interned(
        slots,
        _grown(table.hashes, count + more),
        _grown(table.firsts, count + more),
        _grown(table.sizes, count + more),
        _grown(table.pool, size + more_bytes + 8),
        table.used,
    )


def _grown(column: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    if size <= len(column):
        return column
    larger = np.empty(size + size // 2, dtype=column.dtype)
    larger[: len(column)] = column
    return larger


@compiled
def _place(slots: Codes, hashes: Words, count: int) -> None:
    mask = np.uint64(len(slots) - 1)
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot] != _EMPTY:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number


@compiled
def intern(table: Interned, text: Bytes, at: int, size: int) -> int:
    """The number of ``size`` bytes of ``text``, a new one if they are new."""
    mask = np.uint64(len(table.slots) - 1)
    wanted = hashed(text, at, size)
    slot = wanted & mask
    while True:
        number = table.slots[slot]
        if number == _EMPTY:
            return _added(table, text, at, size, wanted, slot)
        is_alike = table.hashes[number] == wanted and table.sizes[number] == size
        if is_alike and is_same(table.pool, table.firsts[number], text, at, size):
            return signed(number)
        slot = (slot + np.uint64(1)) & mask


@compiled
def _added(table: Interned, text: Bytes, at: int, size: int, wanted: np.uint64, slot: np.uint64) -> int:
    number, first = table.used[0], table.used[1]
    table.slots[slot] = number
    table.hashes[number], table.firsts[number], table.sizes[number] = wanted, first, size
    for place in range(size):
        table.pool[first + place] = byte(text, at + place)
    table.used[0], table.used[1] = number + 1, first + size
    return number
