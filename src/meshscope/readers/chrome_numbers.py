"""Numbers that JSON does not have, in the text of entries: as exporters write them where no one told them how.

Kineto prints floats as C does: by the machine's LC_NUMERIC (``7,757576``), and what is no number as ``inf``, ``nan`` or
``-nan(ind)``. Only what stands where a key's value does is looked at, so a list of numbers stays one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter

import msgspec

from meshscope.readers.chrome_mending import NOT_FINITE

COMMA = "decimal comma in a number"
ODD_NUMBER = "number as JSON has none"

_PIECE = re.compile(
    rb'"(?:[^"\\]|\\.)*+"'  # a key and its value, or a string that is none: what it holds is its own
    rb"(?:\s*:\s*(?:"
    rb"(?P<comma>-?\d+,\d+(?:[eE][+-]?\d+)?)(?=\s*(?:,\s*\"|\}))"
    rb"|(?P<none>[+-]?(?:(?i:inf(?:inity)?|nan)(?:\(\w*\))?|1\.\#(?i:INF|IND|QNAN|SNAN)\d*))(?=\s*[,}])"
    rb"|(?P<odd>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?=\s*[,}])"
    rb"))?",
    re.DOTALL,
)
# Cheaper than the above by far, and finds something in every text that the above finds something to mend in.
_HINT = re.compile(rb":\s*(?:-?\d+(?:,\d|\.(?!\d))|[+-]?(?:(?i:inf|nan)|1\.#|\.\d|0\d)|\+\d)")
_PLAIN = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_PARTS = re.compile(rb"([+-]?)0*(\d*)(\.?)(\d*)(.*)", re.DOTALL)


def renumbered(text: bytes) -> tuple[bytes, Counter[str]] | None:
    """The entries of a JSON list with such numbers as JSON has them, and how many entries had one, by reason.

    None where there is no such number, or more than those is wrong with the text.
    """
    if _HINT.search(text) is None:
        return None
    out: list[bytes] = []
    places: list[tuple[int, str]] = []
    at = size = 0
    for found in _PIECE.finditer(text):
        mended = _mended(found)
        if mended is None:
            continue
        value, reason = mended
        first, last = found.span(found.lastgroup or 0)
        out += (text[at:first], value)
        size += first - at
        places.append((size, reason))
        size, at = size + len(value), last
    if not places:
        return None
    whole = b"".join((*out, text[at:]))
    counts = _counted(whole, places)
    return None if counts is None else (whole, counts)


def _mended(found: re.Match[bytes]) -> tuple[bytes, str] | None:
    name = found.lastgroup
    if name is None:
        return None
    said = found[name]
    if name == "comma":
        return _as_json(said.replace(b",", b".")), COMMA
    if name == "none":
        return b'"' + said + b'"', NOT_FINITE
    return None if _PLAIN.fullmatch(said) else (_as_json(said), ODD_NUMBER)


def _as_json(said: bytes) -> bytes:
    """``+.5`` as ``0.5``, ``1.`` as ``1``, ``01`` as ``1``."""
    sign, whole, _, decimals, rest = _PARTS.fullmatch(said).groups()  # type: ignore[union-attr]  # matches every number
    return b"".join((sign.strip(b"+"), whole or b"0", b"." + decimals if decimals else b"", rest))


def _counted(whole: bytes, places: list[tuple[int, str]]) -> Counter[str] | None:
    """Entries by the reason of their first place; None where the text is still no list."""
    try:
        entries = msgspec.json.decode(whole, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError):
        return None
    counts: Counter[str] = Counter()
    at = number = 0
    for entry in map(bytes, entries):
        at = whole.index(entry, at) + len(entry)
        if number < len(places) and places[number][0] < at:
            counts[places[number][1]] += 1
            number = bisect_left(places, at, lo=number, key=lambda place: place[0])
    return counts
