"""The object around the events of a Chrome trace, pair by pair: where the list begins, and where the object ends.

Only the object's own keys say anything: metadata may hold any key again deeper down, and strings any text.
"""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from enum import Enum, auto
from typing import NamedTuple

from meshscope.readers.chrome_metadata import SCAN

_BETWEEN = re.compile(r"[\s,]*")
_PAIR = re.compile(r'"((?:[^"\\]|\\.){0,4096})"\s*:\s*')
_HALF_PAIR = re.compile(r'"(?:[^"\\]|\\.){0,4096}\\?(?:"\s*)?\Z')
_AFTER = re.compile(r"\s*[,}]")
_LIST_OF_EVENTS = re.compile(r'\[\s*\{\s*"ph"\s*:\s*"')
_EVENTS = "traceEvents"
_LIKE = 0.7
_LARGEST_VALUE = 1 << 24
_FIRST_LOOK = 1 << 16  # the events mostly begin early, and blocks are large


class Stop(Enum):
    """What a walk over pairs ends at."""

    EVENTS = auto()
    TORN_EVENTS = auto()  # a list of events whose key is damaged
    CLOSED = auto()  # the object's own brace
    OPEN = auto()  # the text ends in a pair, or between two
    ODD = auto()  # no pair


class Walked(NamedTuple):
    """``first`` is where that pair (or brace) begins, ``last`` behind the list's bracket or the brace."""

    stop: Stop
    first: int
    last: int


def walk(text: bytes, at: int) -> Walked:
    """Passes over the pairs of an object from ``at`` on, where a key, a comma or the closing brace may stand."""
    found = _walk(text[at : at + _FIRST_LOOK].decode("latin-1"))  # one character per byte
    if found.stop is not Stop.EVENTS and len(text) - at > _FIRST_LOOK:
        found = _walk(text[at:].decode("latin-1"))
    return Walked(found.stop, found.first + at, found.last + at)


def _walk(view: str) -> Walked:
    at = 0
    while True:
        at = _BETWEEN.match(view, at).end()  # type: ignore[union-attr]  # matches the empty text too
        if view[at : at + 1] == "}":
            return Walked(Stop.CLOSED, at, at + 1)
        pair = _PAIR.match(view, at)
        if pair is None or pair.end() == len(view):
            is_open = at == len(view) or pair is not None or _HALF_PAIR.match(view, at) is not None
            return Walked(Stop.OPEN if is_open else Stop.ODD, at, at)
        first = pair.end()
        if view[first] == "[" and (stop := _list(view, pair[1], first)) is not None:
            return Walked(stop, at, first + 1)
        end = _value(view, first)
        if end < 0:
            return Walked(Stop.OPEN if end == _UNFINISHED else Stop.ODD, at, first)
        at = end


_UNFINISHED, _NO_VALUE = -1, -2


def _list(view: str, key: str, first: int) -> Stop | None:
    if key == _EVENTS:
        return Stop.EVENTS
    if _LIST_OF_EVENTS.match(view, first) and SequenceMatcher(None, key[:64], _EVENTS).ratio() > _LIKE:
        return Stop.TORN_EVENTS
    return None


def _value(view: str, first: int) -> int:
    """Past the value at ``first``, or why that cannot be told."""
    try:
        end = SCAN.raw_decode(view, first)[1]
    except json.JSONDecodeError as error:
        runs_out = error.pos >= len(view.rstrip()) or error.msg.startswith("Unterminated string")
        is_open = (runs_out or _is_begun(view, error.pos)) and len(view) - first < _LARGEST_VALUE
        return _UNFINISHED if is_open else _NO_VALUE
    except (ValueError, RecursionError):
        return _NO_VALUE
    if not view[end:].strip():
        return _UNFINISHED  # a number may go on
    return end if _AFTER.match(view, end) else _NO_VALUE


def _is_begun(view: str, at: int) -> bool:
    """Whether the text ends inside a word or an escape that begins here."""
    return (
        len(view) - at < 12
        and re.fullmatch(r"-|t(ru?)?|f(a(ls?)?)?|n(ul?)?|N(a)?|-?I\w*|\\?u?\w{0,4}", view[at:]) is not None
    )
