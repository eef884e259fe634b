"""Entries of a Chrome trace taken one by one, where a batch of them does not decode: damage costs the one it is in."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

import msgspec

from meshscope.readers.chrome_mending import BAD_QUOTE, as_event, encoded, mended
from meshscope.readers.chrome_metadata import SCAN, names_top_level
from meshscope.readers.chrome_numbers import renumbered
from meshscope.readers.damage import CUT_SHORT, DAMAGED, ENDLESS, NOT_AN_EVENT, SECOND_HEAD

Entry = TypeVar("Entry")

BAD_DECODE = (msgspec.MsgspecError, RecursionError)
NARROW_BYTES = 1 << 16
LONGEST_ENTRY_BYTES = 1 << 26
LIST_END = re.compile(r'\}\s*\]\s*(?:,\s*"\w[\w ]*"\s*:|\}?\s*\Z)')

_SPACE = re.compile(r"[\s,]*")
_NEXT_EVENT = re.compile(r'\{\s*"ph"\s*:|(?<=\})\s*,\s*\{\s*"(?:name|cat|args|ts|dur|pid|tid|id|s|bp)"\s*:')
_DEEP = 500


class Taken(NamedTuple, Generic[Entry]):
    """Entries and the bytes they took; whether the list's own end was met, or an entry that is too long."""

    entries: list[Entry]
    used_bytes: int
    is_end: bool = False
    is_endless: bool = False


class Single(Generic[Entry]):
    """Counts into ``dropped`` and ``repaired`` what it cannot decode, by reason."""

    def __init__(self, decode: Callable[[bytes], list[Entry]], dropped: Counter[str], repaired: Counter[str]) -> None:
        self._decode, self._dropped, self._repaired = decode, dropped, repaired

    def taken(self, text: bytes, *, is_all: bool) -> Taken[Entry]:
        """The entries at the beginning of ``text``; one that is not whole yet waits unless that is all."""
        view = text.decode("latin-1")  # one character per byte, so positions are the same
        entries: list[Entry] = []
        at = 0
        while at < min(len(text), NARROW_BYTES):
            at = _SPACE.match(view, at).end()  # type: ignore[union-attr]  # matches the empty text too
            if view[at : at + 1] in ("]", ""):
                return Taken(entries, min(at + 1, len(text)), is_end=view[at : at + 1] == "]")
            end, is_cut = _end_of_entry(view, at, is_all=is_all)
            if end < 0:
                break
            if is_cut and not is_all and len(text) - at >= LONGEST_ENTRY_BYTES:
                self._dropped[ENDLESS] += 1
                return Taken(entries, len(text), is_endless=True)
            entries += self._entry(text[at:end], is_cut=is_cut)
            at = end
        return Taken(entries, at)

    def _entry(self, text: bytes, *, is_cut: bool) -> list[Entry]:
        if is_cut:
            self._dropped[CUT_SHORT] += 1
            return []
        try:
            return self._decode(b"[" + text + b"]")
        except BAD_DECODE:
            text = text.rstrip(b" \t\r\n,")
        entries = self.renumbered(b"[" + text + b"]")
        return self._mended(text) if entries is None else entries

    def renumbered(self, text: bytes) -> list[Entry] | None:
        """The entries of a list in which nothing but numbers is wrong; None where that is not so."""
        found = renumbered(text)
        if found is None:
            return None
        try:
            entries = self._decode(found[0])
        except BAD_DECODE:
            return None
        self._repaired.update(found[1])
        return entries

    def _mended(self, text: bytes) -> list[Entry]:
        found = mended(text)
        # Where no quote had to be guessed, the keys are this entry's own and deeper ones, whatever they are called.
        if (found is None or found[1] == BAD_QUOTE) and names_top_level(text):
            self._dropped[SECOND_HEAD] += 1
            return []
        if found is None:
            self._dropped[DAMAGED] += 1
            return []
        value, reason = found
        try:
            entries = self._decode(b"[" + encoded(as_event(value)) + b"]") if isinstance(value, dict) else []
        except BAD_DECODE:
            entries = []
        (self._repaired if entries else self._dropped)[reason if entries else NOT_AN_EVENT] += 1
        return entries


def _end_of_entry(view: str, at: int, *, is_all: bool) -> tuple[int, bool]:
    """Where the entry at ``at`` ends, or where the next begins if it is damaged; −1 when more text may end it.

    With it, whether the file ends inside the entry.
    """
    search_from = at + 1
    try:
        return SCAN.raw_decode(view, at)[1], False
    except json.JSONDecodeError as error:
        runs_out = error.pos >= len(view) or error.msg.startswith("Unterminated string")
    except ValueError:
        runs_out = False
    except RecursionError:
        runs_out, search_from = False, at + _DEEP  # so much at least is nested in this entry
    if runs_out and not is_all and len(view) - at < LONGEST_ENTRY_BYTES:
        return -1, False
    following = next_event(view, search_from)
    if following >= 0:
        return following, False
    if not is_all and len(view) - at < LONGEST_ENTRY_BYTES:
        return -1, False
    ending = None if runs_out else LIST_END.search(view, at)
    is_cut = runs_out or not view.rstrip().endswith(("}", "]"))
    return (ending.start() + 1, False) if ending else (len(view), is_cut)


def next_event(view: str, at: int) -> int:
    """The next place where an event begins; −1 without one.

    Objects in an argument's list look alike but for their ``ph``: the first is taken only if none of a few has one.
    """
    first = -1
    if view.find("{", at) < 0:
        return first
    for found in islice(_NEXT_EVENT.finditer(view, at), 64):
        start = view.index("{", found.start())
        if found[0].startswith("{"):
            return start
        try:
            value, _ = SCAN.raw_decode(view, start)
        except (ValueError, RecursionError):
            value = ("ph",)
        if "ph" in value:
            return start
        first = start if first < 0 else first
    return first
