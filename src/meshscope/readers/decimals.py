"""Decimal microseconds → int64 nanoseconds, from their digits and never through a float.

Absolute times have 19 digits; a float64 would lose up to 253 ns of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

UNKNOWN_NS = np.iinfo(np.int64).min
"""Stands for a token that is no number."""

BEYOND_NS, BEFORE_NS, RATHER_NS = (UNKNOWN_NS + n for n in (1, 2, 3))
"""Stand for numbers beyond int64: too large, too small, and such as are a wall time if they count nanoseconds."""

_LARGEST = 2**63 - 5
_WALL_NS = 946_684_800 * 10**9, 2**62  # the years 2000 and 2116
_COMMA, _DOT, _ZERO, _NINE = (ord(c) for c in ",.09")
_LONGEST_TOKEN = 400
_EXACT = Context(prec=_LONGEST_TOKEN)
_FITS = 19  # digits of a nanosecond count that may fit int64; they do when the first is no nine


def nanoseconds(tokens: Sequence[Any]) -> npt.NDArray[np.int64]:
    """JSON number tokens (bytes-like, microseconds) as nanoseconds, shape (len(tokens),).

    Beyond three decimals rounding is to the nearest, ties to even. Numbers in quotes are accepted.
    """
    if not tokens:
        return np.empty(0, dtype=np.int64)
    text = b",".join(tokens) + b","
    chars = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(chars == _COMMA)
    if len(ends) != len(tokens):
        return _one_by_one(tokens)
    values, is_plain = _plain(chars, ends)
    odd = np.flatnonzero(~is_plain)
    values[odd] = _one_by_one(tokens[row] for row in odd.tolist())
    return values


def _plain(
    chars: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Values of tokens made of digits with at most three decimals, and which tokens those are."""
    is_dot = chars == _DOT
    dots = np.flatnonzero(is_dot)
    owner = np.searchsorted(ends, dots)
    decimals = np.zeros(len(ends), dtype=np.int64)
    decimals[owner] = ends[owner] - dots - 1
    digits = chars[~is_dot]
    ends = ends - np.searchsorted(dots, ends)
    lengths = np.diff(ends, prepend=-1) - 1
    first = digits[np.maximum(ends - lengths, 0)]
    scaled = lengths + 3 - decimals
    is_plain = (lengths > 0) & (decimals <= 3) & (np.bincount(owner, minlength=len(ends)) <= 1)
    is_plain &= (scaled < _FITS) | ((scaled == _FITS) & (first < _NINE))
    is_digit = (digits >= _ZERO) & (digits <= _NINE)
    is_digit[ends] = True
    is_plain[np.searchsorted(ends, np.flatnonzero(~is_digit))] = False
    values = _digits_to_int(digits, ends, np.where(is_plain, lengths, 0))
    return values * 10 ** (3 - np.clip(decimals, 0, 3)), is_plain


def _digits_to_int(
    digits: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Tokens of equal length are one matrix of digits; a trace has few different lengths."""
    values = np.zeros(len(ends), dtype=np.int64)
    for length in (np.flatnonzero(np.bincount(lengths)[1:]) + 1).tolist():
        rows = np.flatnonzero(lengths == length)
        if len(rows) == len(ends):
            matrix = digits.reshape(len(ends), length + 1)[:, :length]
        else:
            matrix = digits[(ends[rows] - length)[:, None] + np.arange(length)]
        values[rows] = _matrix_to_int(matrix)
    return values


def _matrix_to_int(matrix: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Rows of ASCII digits, shape (n, length), as integers: Horner's rule, one column at a time."""
    columns = np.ascontiguousarray(matrix.T) - np.uint8(_ZERO)
    values = np.zeros(len(matrix), dtype=np.int64)
    for column in columns:
        values *= 10
        values += column
    return values


def _one_by_one(tokens: Iterable[Any]) -> npt.NDArray[np.int64]:
    return np.array([_slowly(bytes(token)) for token in tokens], dtype=np.int64)


def _slowly(token: bytes) -> int:
    # A number of microseconds that fits has few digits; a power of ten may stand for millions of them.
    if len(token) > _LONGEST_TOKEN:
        return int(UNKNOWN_NS)
    try:
        value = Decimal(token.decode("ascii").strip().strip('"'))
        if not value:
            return 0
        if value.is_finite() and value.adjusted() >= _FITS:
            return int(BEFORE_NS if value < 0 else BEYOND_NS)
        exact = int(value.scaleb(3, _EXACT).to_integral_value())
    except (ArithmeticError, UnicodeDecodeError, ValueError):
        return int(UNKNOWN_NS)
    if abs(exact) <= _LARGEST:
        return exact
    is_wall_time = _WALL_NS[0] <= value < _WALL_NS[1]
    return int(RATHER_NS if is_wall_time else BEYOND_NS if exact > 0 else BEFORE_NS)
