"""Events of a Chrome trace, from their text straight into columns.

One call passes over the plain events at the beginning of a text and stops before the first that holds anything ODD:
an escape in a key, a key twice, a number that is no plain one, a value of an unusual type. Names are interned by their
bytes; what they say is decoded once for each, elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from meshscope.fast import compiled
from meshscope.readers.fast.interning import Interned, intern
from meshscope.readers.fast.json_scan import ODD, after_space, number_end, plain_end, string_end, value_end
from meshscope.readers.fast.words import MASKS, Bytes, Longs, byte, load, word

UNKNOWN = np.iinfo(np.int64).min
ABSENT = -1
_ROW, _ASIDE, _PASSED = range(3)  # what becomes of an event that is not ODD
_ODD_COUNT = -2

_QUOTE, _COMMA, _COLON, _DOT, _MINUS, _ZERO, _NINE, _BACKSLASH = (ord(sign) for sign in '",:.-09\\')
_X, _M, _I, _S, _T, _F = (ord(phase) for phase in "XMistf")  # flows start, step and finish
_OBJECT, _OBJECT_END = (ord(sign) for sign in "{}")

# Where the value of a key stands in an event: ``found[key]`` its first byte, ``found[key + KEYS]`` past its last.
PH, CAT, NAME, TS, DUR, PID, TID, ARGS, STREAM, DEVICE, CORRELATION, COLLECTIVE, NODE, OTHER = range(14)
KEYS = 14

_PH, _TS, _CAT, _DUR, _PID, _TID, _NAME, _ARGS = (
    word(key) for key in (b"ph", b"ts", b"cat", b"dur", b"pid", b"tid", b"name", b"args")
)
_PH_X, _THEN_CAT, _THEN_NAME, _COLON_QUOTE = word(b'"ph": "X'), word(b'", "cat"'), word(b', "name"'), word(b': "')
_PID_, _TID_, _TS_, _DUR_ = word(b'"pid": '), word(b'"tid": '), word(b'"ts": '), word(b'"dur": ')
_STREAM, _DEVICE, _CORRELA, _TION = word(b"stream"), word(b"device"), word(b"correlat"), word(b"ion")
_COLLECTI, _VE_NAME = word(b"Collecti"), word(b"ve name")
_SEQUENCE, _NUMBER = word(b"Sequence"), word(b" number")
_THREAD_N, _AME, _MEMORY = word(b"thread_n"), word(b"ame"), word(b"[memory]")
_NULL = np.frombuffer(b"null" + bytes(8), dtype=np.uint8)
_NULL_WORD, _FOUR = word(b"null"), np.uint64(0xFFFFFFFF)


class Rows(NamedTuple):
    """Room for the complete events of one call, by row; ``first`` and ``last`` bound each in the text."""

    start_ns: npt.NDArray[np.int64]
    dur_ns: npt.NDArray[np.int64]
    category: npt.NDArray[np.int32]
    name: npt.NDArray[np.int32]
    thread: npt.NDArray[np.int32]
    device: npt.NDArray[np.int64]
    stream: npt.NDArray[np.int64]
    correlation: npt.NDArray[np.int64]
    node: npt.NDArray[np.int64]
    is_collective: npt.NDArray[np.bool_]
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]


class Aside(NamedTuple):
    """Room for the bounds of events that are read elsewhere: names of threads, allocations."""

    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]


class Names(NamedTuple):
    """What was interned so far. ``threads`` are pairs of two ``ids``, a process and a thread.

    ``pair`` is the last one of those and its number; ``pair_text`` are its bytes.
    """

    categories: Interned
    names: Interned
    ids: Interned
    threads: Interned
    pair: npt.NDArray[np.int32]
    pair_text: npt.NDArray[np.uint8]


@compiled
def scan(text: Bytes, at: int, names: Names, rows: Rows, aside: Aside, found: Longs) -> tuple[int, int, int, int]:
    """Takes events from ``at`` on; gives (past the last one taken, events, rows, events set aside).

    ``at`` is the beginning of a list's text or stands behind an event. ``found`` is room for 2 × KEYS numbers.
    """
    events, row, side = 0, 0, 0
    room, side_room = len(rows.start_ns), len(aside.first)
    while row < room and side < side_room:
        first = after_space(text, at)
        if byte(text, first) == _COMMA:
            first = after_space(text, first + 1)
        elif events:
            break
        last = _event(text, first, found) if byte(text, first) == _OBJECT else ODD
        kind = _kind(text, found) if last >= 0 else ODD
        if kind == _ROW:
            kind = _take(text, found, names, rows, row)
        if kind == ODD:
            break
        if kind == _ROW:
            rows.first[row], rows.last[row] = first, last
            row += 1
        elif kind == _ASIDE:
            aside.first[side], aside.last[side] = first, last
            side += 1
        events, at = events + 1, last
    return at, events, row, side


@compiled
def _event(text: Bytes, at: int, found: Longs) -> int:
    """Past the event that opens at ``at``, with the values of its known keys in ``found``."""
    found[:KEYS] = ABSENT
    at = _usual(text, after_space(text, at + 1), found)
    while byte(text, at) == _QUOTE:
        end, value = _key(text, at)
        key = _event_key(text, at + 1, end - at - 1)
        if value < 0 or found[key] != ABSENT:
            return ODD
        is_arguments = key == ARGS and byte(text, value) == _OBJECT
        end = _arguments(text, value, found) if is_arguments else _end(text, value)
        if end < 0:
            return ODD
        if key != OTHER:
            found[key], found[key + KEYS] = value, end
        at = _next(text, end)
    return at + 1 if byte(text, at) == _OBJECT_END else ODD


@compiled
def _usual(text: Bytes, at: int, found: Longs) -> int:
    """The keys that Kineto writes first, as far as they stand as it writes them; the next key or end from there."""
    if load(text, at) != _PH_X or load(text, at + 8) != _THEN_CAT or load(text, at + 16) & MASKS[3] != _COLON_QUOTE:
        return at
    found[PH], found[PH + KEYS] = at + 6, at + 9
    at += 11
    end = plain_end(text, at + 8)
    if end < 0:
        return at
    found[CAT], found[CAT + KEYS] = at + 7, end + 1
    if load(text, end + 1) != _THEN_NAME or load(text, end + 9) & MASKS[3] != _COLON_QUOTE:
        return _next(text, end + 1)
    at = end + 3
    end = string_end(text, at + 9)
    if end < 0:
        return at
    found[NAME], found[NAME + KEYS] = at + 8, end + 1
    at = end + 1
    end = _usual_number(text, at, _PID_, 7, found, PID)
    at, end = (end, _usual_number(text, end, _TID_, 7, found, TID)) if end >= 0 else (at, end)
    at, end = (end, _usual_number(text, end, _TS_, 6, found, TS)) if end >= 0 else (at, end)
    at, end = (end, _usual_number(text, end, _DUR_, 7, found, DUR)) if end >= 0 else (at, end)
    return _next(text, end if end >= 0 else at)


@compiled
def _usual_number(text: Bytes, at: int, name: np.uint64, size: int, found: Longs, key: int) -> int:
    """Past the number of a key that follows the value which ends at ``at``; ODD when another does, or no number."""
    value = after_space(text, at + 1) + size
    if byte(text, at) != _COMMA or load(text, value - size) & MASKS[size] != name:
        return ODD
    end = number_end(text, value)
    if end >= 0:
        found[key], found[key + KEYS] = value, end
    return end


@compiled
def _arguments(text: Bytes, at: int, found: Longs) -> int:
    """The same for the arguments of an event."""
    at = after_space(text, at + 1)
    while byte(text, at) == _QUOTE:
        end, value = _key(text, at)
        key = _argument_key(text, at + 1, end - at - 1)
        if value < 0 or found[key] != ABSENT:
            return ODD
        end = _end(text, value)
        if end < 0:
            return ODD
        if key != OTHER:
            found[key], found[key + KEYS] = value, end
        at = _next(text, end)
    return at + 1 if byte(text, at) == _OBJECT_END else ODD


@compiled
def _key(text: Bytes, at: int) -> tuple[int, int]:
    """The closing quote of the key that opens at ``at``, and its value; ODD for either."""
    end = plain_end(text, at + 1)
    if end < 0:
        return ODD, ODD
    value = after_space(text, end + 1)
    return (end, after_space(text, value + 1)) if byte(text, value) == _COLON else (ODD, ODD)


@compiled
def _next(text: Bytes, at: int) -> int:
    """Behind a value: the next key, or the end of the object; where it is neither, the zero that ends every buffer."""
    at = after_space(text, at)
    if byte(text, at) != _COMMA:
        return at if byte(text, at) == _OBJECT_END else len(text) - 1
    at = after_space(text, at + 1)
    return at if byte(text, at) == _QUOTE else len(text) - 1


@compiled
def _end(text: Bytes, at: int) -> int:
    if byte(text, at) == _QUOTE:
        end = string_end(text, at + 1)
        return end + 1 if end >= 0 else ODD
    return value_end(text, at)


@compiled
def _event_key(text: Bytes, at: int, size: int) -> int:
    if size < 2 or size > 4:
        return OTHER
    key = load(text, at) & MASKS[size]
    if size == 2:
        return PH if key == _PH else TS if key == _TS else OTHER
    if size == 3:
        return PID if key == _PID else TID if key == _TID else CAT if key == _CAT else DUR if key == _DUR else OTHER
    return NAME if key == _NAME else ARGS if key == _ARGS else OTHER


@compiled
def _argument_key(text: Bytes, at: int, size: int) -> int:
    if size == 6:
        key = load(text, at) & MASKS[6]
        return STREAM if key == _STREAM else DEVICE if key == _DEVICE else OTHER
    if size == 11:
        is_it = load(text, at) == _CORRELA and load(text, at + 8) & MASKS[3] == _TION
        return CORRELATION if is_it else OTHER
    if size == 15:
        begin, rest = load(text, at), load(text, at + 8) & MASKS[7]
        if begin == _SEQUENCE:
            return NODE if rest == _NUMBER else OTHER
        return COLLECTIVE if begin == _COLLECTI and rest == _VE_NAME else OTHER
    return OTHER


@compiled
def _kind(text: Bytes, found: Longs) -> int:
    """Whether an event is a row, set aside, passed over or ODD: of a type that the decoder may refuse."""
    phase = found[PH]
    if not _is_typed(text, found) or phase < 0 or byte(text, phase) != _QUOTE or found[PH + KEYS] != phase + 3:
        return ODD
    sign = byte(text, phase + 1)
    if sign == _X:
        return _ROW
    if sign == _M or sign == _I:
        return _ASIDE if _is_read_elsewhere(text, found[NAME], found[NAME + KEYS]) else _PASSED
    return _PASSED if sign == _S or sign == _T or sign == _F else ODD


@compiled
def _is_typed(text: Bytes, found: Longs) -> bool:
    """Whether an event's values are of types that the decoder takes."""
    if not (_is_text(text, found[CAT]) and _is_text(text, found[NAME])):
        return False
    if not (_is_id(text, found, PID) and _is_id(text, found, TID)):
        return False
    args = found[ARGS]
    return args < 0 or byte(text, args) == _OBJECT or load(text, args) & _FOUR == _NULL_WORD


@compiled
def _is_text(text: Bytes, at: int) -> bool:
    return at < 0 or byte(text, at) == _QUOTE or load(text, at) & _FOUR == _NULL_WORD


@compiled
def _is_id(text: Bytes, found: Longs, key: int) -> bool:
    """Absent, null, a text or an integer of at most 18 digits."""
    if _is_text(text, found[key]):
        return True
    at, end = found[key], found[key + KEYS]
    if byte(text, at) == _MINUS:
        at += 1
    if end - at > 18:
        return False
    for place in range(at, end):
        if byte(text, place) < _ZERO or byte(text, place) > _NINE:
            return False
    return True


@compiled
def _has_escape(text: Bytes, at: int, end: int) -> bool:
    for place in range(at, end):
        if byte(text, place) == _BACKSLASH:
            return True
    return False


@compiled
def _is_read_elsewhere(text: Bytes, at: int, end: int) -> bool:
    """Whether a name is that of a thread's name or of an allocation, or one that only a decoder can read."""
    size = end - at - 2
    if size == 8 and load(text, at + 1) == _MEMORY:
        return True
    if size == 11 and load(text, at + 1) == _THREAD_N and load(text, at + 9) & MASKS[3] == _AME:
        return True
    return at >= 0 and _has_escape(text, at, end)


@compiled
def _take(text: Bytes, found: Longs, names: Names, rows: Rows, row: int) -> int:
    """An event's columns; ODD when one of its numbers is."""
    start_ns = _nanoseconds(text, found[TS], found[TS + KEYS]) if found[TS] >= 0 else UNKNOWN
    dur_ns = _nanoseconds(text, found[DUR], found[DUR + KEYS]) if found[DUR] >= 0 else UNKNOWN
    device, stream = _count(text, found, DEVICE), _count(text, found, STREAM)
    correlation, node = _count(text, found, CORRELATION), _count(text, found, NODE)
    if start_ns == ODD or dur_ns == ODD or min(device, stream, correlation, node) == _ODD_COUNT:
        return ODD
    rows.start_ns[row], rows.dur_ns[row] = start_ns, dur_ns
    rows.device[row], rows.stream[row], rows.correlation[row] = device, stream, correlation
    rows.node[row] = node
    rows.is_collective[row] = found[COLLECTIVE] >= 0
    rows.category[row] = _number(names.categories, text, found, CAT)
    rows.name[row] = _number(names.names, text, found, NAME)
    rows.thread[row] = _thread(names, text, found)
    return _ROW


@compiled
def _thread(names: Names, text: Bytes, found: Longs) -> int:
    process, thread = _number(names.ids, text, found, PID), _number(names.ids, text, found, TID)
    pair = names.pair
    if process != pair[0] or thread != pair[1]:
        pair[0], pair[1] = process, thread
        pair[2] = intern(names.threads, names.pair_text, 0, 8)
    return pair[2]


@compiled
def _number(table: Interned, text: Bytes, found: Longs, key: int) -> int:
    """The number of a value by its bytes, quotes and all; what is absent is null."""
    at = found[key]
    return intern(table, text, at, found[key + KEYS] - at) if at >= 0 else intern(table, _NULL, 0, 4)


@compiled
def _nanoseconds(text: Bytes, at: int, end: int) -> int:
    """Microseconds of at most 16 digits and three decimals; else ODD."""
    value, first = 0, at
    while _ZERO <= byte(text, at) <= _NINE:
        value = value * 10 + (byte(text, at) - _ZERO)
        at += 1
    size = at - first
    if size == 0 or size > 16 or (size == 16 and byte(text, first) == _NINE):
        return ODD
    decimals = 0
    if byte(text, at) == _DOT:
        at += 1
        while decimals < 3 and _ZERO <= byte(text, at) <= _NINE:
            value, decimals = value * 10 + (byte(text, at) - _ZERO), decimals + 1
            at += 1
    if at != end:
        return ODD
    return value * (1000 if decimals == 0 else 100 if decimals == 1 else 10 if decimals == 2 else 1)


@compiled
def _count(text: Bytes, found: Longs, key: int) -> int:
    """A number of at most 18 digits; −1 where there is none, where it is negative, no integer or no number at all."""
    at, end = found[key], found[key + KEYS]
    if at < 0 or byte(text, at) == _QUOTE:
        return -1
    value, begin = 0, at
    while _ZERO <= byte(text, at) <= _NINE and at - begin < 18:
        value = value * 10 + (byte(text, at) - _ZERO)
        at += 1
    if at == end:
        return value
    is_negative = byte(text, begin) == _MINUS and byte(text, begin + 1) != _ZERO and end - begin < 18
    is_null = load(text, begin) & _FOUR == _NULL_WORD
    return -1 if is_negative or is_null else _ODD_COUNT
