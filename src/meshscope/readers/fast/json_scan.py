"""JSON as the strict grammar has it, passed over in place: where a value ends, or ODD.

What is ODD is not wrong: it is left to the decoder that reads everything. Buffers end in :data:`words.PAD`, whose zero
bytes no grammar accepts, so nothing runs past an end.
"""

from __future__ import annotations

import numpy as np

from meshscope.fast import compiled
from meshscope.readers.fast.words import Bytes, byte, digits, load, signed, special, trailing_zeros, word

ODD = -1
_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _DOT = (ord(sign) for sign in '"\\,:-.')
_LIST, _LIST_END, _OBJECT, _OBJECT_END = (ord(sign) for sign in "[]{}")
_ZERO, _NINE = ord("0"), ord("9")
_DEEPEST = 40
_LONGEST_NUMBER = 40
_BLANKS = word(b" " * 8)
_TRUE, _FALSE, _NULL = word(b"true"), word(b"false"), word(b"null")
_FOUR, _FIVE = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFFFF)


@compiled
def after_space(text: Bytes, at: int) -> int:
    """The first byte at or after ``at`` that is no white space."""
    sign = byte(text, at)
    if sign > 32:
        return at
    while sign == 32 or sign == 10 or sign == 13 or sign == 9:
        at += 1
        while load(text, at) == _BLANKS:
            at += 8
        sign = byte(text, at)
    return at


@compiled
def string_end(text: Bytes, at: int) -> int:
    """The closing quote of the string whose first character is at ``at``."""
    while True:
        found = special(load(text, at))
        if found == np.uint64(0):
            at += 8
            continue
        at += signed(trailing_zeros(found) >> np.uint64(3))
        sign = byte(text, at)
        if sign == _QUOTE:
            return at
        at = _after_escape(text, at) if sign == _BACKSLASH else _after_character(text, at)
        if at < 0:
            return ODD


@compiled
def plain_end(text: Bytes, at: int) -> int:
    """The closing quote of a string without escapes and of ASCII alone; anything else is ODD."""
    found = special(load(text, at))
    while found == np.uint64(0):
        at += 8
        found = special(load(text, at))
    at += signed(trailing_zeros(found) >> np.uint64(3))
    return at if byte(text, at) == _QUOTE else ODD


@compiled
def _after_escape(text: Bytes, at: int) -> int:
    """Past a simple escape or one of four digits outside the surrogates."""
    sign = byte(text, at + 1)
    if sign != 117:  # u
        is_known = sign in (34, 92, 47, 98, 102, 110, 114, 116)  # " \ / b f n r t
        return at + 2 if is_known else ODD
    code = 0
    for place in range(at + 2, at + 6):
        digit = _hex(byte(text, place))
        if digit < 0:
            return ODD
        code = code * 16 + digit
    return ODD if 0xD800 <= code < 0xE000 else at + 6


@compiled
def _hex(sign: int) -> int:
    if _ZERO <= sign <= _NINE:
        return sign - _ZERO
    letter = sign | 32
    return letter - 87 if 97 <= letter <= 102 else ODD


@compiled
def _after_character(text: Bytes, at: int) -> int:
    """Past one character of UTF-8 beyond ASCII; ODD for control characters and for what is no UTF-8."""
    first, second = byte(text, at), byte(text, at + 1)
    if 0xC2 <= first < 0xE0:
        more, low, high = 1, 0x80, 0xBF
    elif 0xE0 <= first < 0xF0:
        more, low, high = 2, 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first < 0xF5:
        more, low, high = 3, 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
    else:
        return ODD
    if second < low or second > high:
        return ODD
    for place in range(at + 2, at + 1 + more):
        if byte(text, place) & 0xC0 != 0x80:
            return ODD
    return at + 1 + more


@compiled
def _after_digits(text: Bytes, at: int) -> int:
    more = digits(load(text, at))
    while more == 8:
        at += 8
        more = digits(load(text, at))
    return at + more


@compiled
def number_end(text: Bytes, at: int) -> int:
    """Past a number of at most 40 characters and a two-digit exponent."""
    begin = at
    if byte(text, at) == _MINUS:
        at += 1
    first = at
    at = _after_digits(text, at)
    if at == first or (byte(text, first) == _ZERO and at > first + 1):
        return ODD
    if byte(text, at) == _DOT:
        first = at + 1
        at = _after_digits(text, first)
        if at == first:
            return ODD
    if byte(text, at) | 32 == 101:  # e
        first = at + 2 if byte(text, at + 1) in (43, 45) else at + 1
        at = _after_digits(text, first)
        if at == first or at > first + 2:
            return ODD
    return at if at - begin <= _LONGEST_NUMBER else ODD


@compiled
def _literal_end(text: Bytes, at: int) -> int:
    found = load(text, at)
    if found & _FOUR == _NULL or found & _FOUR == _TRUE:
        return at + 4
    return at + 5 if found & _FIVE == _FALSE else ODD


@compiled
def _scalar_end(text: Bytes, at: int) -> int:
    sign = byte(text, at)
    if sign == _QUOTE:
        at = string_end(text, at + 1)
        return at + 1 if at >= 0 else ODD
    if sign <= _NINE:
        return number_end(text, at)
    return _literal_end(text, at)


@compiled
def after_key(text: Bytes, at: int) -> int:
    """The value that the key opening at ``at`` belongs to; ODD when there is no key."""
    if byte(text, at) != _QUOTE:
        return ODD
    at = string_end(text, at + 1)
    if at < 0:
        return ODD
    at = after_space(text, at + 1)
    return after_space(text, at + 1) if byte(text, at) == _COLON else ODD


@compiled
def _inside(text: Bytes, at: int, objects: int) -> int:
    """The next value of the innermost level, past its key where that is an object."""
    at = after_space(text, at)
    return after_key(text, at) if objects & 1 else at


@compiled
def _is_end(sign: int, objects: int) -> bool:
    return sign == (_OBJECT_END if objects & 1 else _LIST_END)


@compiled
def _closed(text: Bytes, at: int, depth: int, objects: int) -> tuple[int, int, int]:
    """Past the ends of all levels that close at ``at``, with the depth and levels that are left."""
    at = after_space(text, at)
    while depth > 0 and _is_end(byte(text, at), objects):
        depth, objects = depth - 1, objects >> 1
        at = at + 1 if depth == 0 else after_space(text, at + 1)
    return at, depth, objects


@compiled
def _counts_end(text: Bytes, at: int) -> int:
    """Past a list of plain counts, as tensors' sizes are, whose first one is at ``at``; anything else is ODD."""
    while True:
        found = load(text, at)
        size = digits(found)
        if size == 0 or size > 7 or (size > 1 and byte(text, at) == _ZERO):
            return ODD
        at += size
        sign = byte(text, at)
        if sign != _COMMA:
            return at + 1 if sign == _LIST_END else ODD
        at += 2 if byte(text, at + 1) == 32 else 1


@compiled
def value_end(text: Bytes, at: int) -> int:
    """Past the value at ``at``, nested at most 40 deep."""
    depth, objects = 0, 0  # the lowest bit of ``objects``: whether the innermost level is an object
    while at >= 0:
        sign = byte(text, at)
        end = _counts_end(text, at + 1) if sign == _LIST and byte(text, at + 1) <= _NINE else ODD
        if end >= 0:
            at = end
            if depth == 0:
                return at
        elif sign == _LIST or sign == _OBJECT:
            depth, objects = depth + 1, objects * 2 + (1 if sign == _OBJECT else 0)
            inside = after_space(text, at + 1)
            if not _is_end(byte(text, inside), objects):
                at = _inside(text, inside, objects) if depth <= _DEEPEST else ODD
                continue
            at = inside
        else:
            at = _scalar_end(text, at)
            if at < 0 or depth == 0:
                return at
        at, depth, objects = _closed(text, at, depth, objects)
        if depth == 0:
            return at
        at = _inside(text, at + 1, objects) if byte(text, at) == _COMMA else ODD
    return ODD
