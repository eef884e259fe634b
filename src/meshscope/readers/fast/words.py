"""Eight bytes at a time: loads at any address, and where in a word the first byte of interest is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from meshscope.fast import compiled

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

signed: Any = np.int64
"""Makes a signed number of a word; the two are never mixed, since together they become a float."""

PAD = b"\0" * 8
"""What follows every buffer, so that a word can be loaded at its last byte."""

MASKS = np.array([(1 << (8 * size)) - 1 for size in range(8)] + [2**64 - 1], dtype=np.uint64)
"""``MASKS[n]`` keeps the first n bytes of a word."""

_ONES, _HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_DIGITS, _BEYOND_NINE = np.uint64(0x3030303030303030), np.uint64(0x7676767676767676)
_SPACES = np.uint64(0x2020202020202020)
_QUOTES, _BACKSLASHES = np.uint64(0x2222222222222222), np.uint64(0x5C5C5C5C5C5C5C5C)


def word(text: bytes) -> np.uint64:
    """At most eight bytes as the word that :func:`load` finds where they stand."""
    return np.uint64(int.from_bytes(text, "little"))


@intrinsic
def load(typing: Any, buffer: Any, at: Any) -> Any:
    """The little-endian word at byte ``at`` of a uint8 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        found = builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()))
        found.align = 1
        return found

    return types.uint64(buffer, types.int64), generate


@intrinsic
def byte(typing: Any, buffer: Any, at: Any) -> Any:
    """The byte at ``at`` of a uint8 array, which must lie inside: nothing is counted from the end."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.zext(builder.load(builder.gep(array.data, [arguments[1]])), ir.IntType(64))

    return types.int64(buffer, types.int64), generate


@intrinsic
def trailing_zeros(typing: Any, value: Any) -> Any:
    """The number of zero bits below the lowest one of a word; 64 for zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@compiled
def special(text: np.uint64) -> np.uint64:
    """The high bit of the first byte that is a quote, a backslash, a control character or not ASCII (and others)."""
    quote, escape = text ^ _QUOTES, text ^ _BACKSLASHES
    found = ((quote - _ONES) & ~quote) | ((escape - _ONES) & ~escape) | ((text - _SPACES) & ~text) | text
    return found & _HIGH


@compiled
def digits(text: np.uint64) -> int:
    """How many bytes at the beginning of a word are digits, at most 8."""
    value = text ^ _DIGITS
    others = ((value + _BEYOND_NINE) | value) & _HIGH
    return signed(trailing_zeros(others) >> np.uint64(3))


@compiled
def hashed(buffer: Bytes, start: int, size: int) -> np.uint64:
    """A hash of ``size`` bytes."""
    value = np.uint64(size) * np.uint64(0x9E3779B97F4A7C15)
    end = start + size
    while start + 8 <= end:
        value = (value ^ load(buffer, start)) * np.uint64(0xD6E8FEB86659FD93)
        value ^= value >> np.uint64(32)
        start += 8
    value = (value ^ (load(buffer, start) & MASKS[end - start])) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(29))


@compiled
def is_same(a: Bytes, at: int, b: Bytes, other: int, size: int) -> bool:
    """Whether ``size`` bytes of two buffers are equal."""
    while size >= 8:
        if load(a, at) != load(b, other):
            return False
        at, other, size = at + 8, other + 8, size - 8
    return bool((load(a, at) ^ load(b, other)) & MASKS[size] == np.uint64(0))
