"""The Chrome trace container, read in pieces: the entries of ``traceEvents`` in batches, and what stands around them.

Batches are cut where one entry ends and the next begins. A cut inside a string or a nested list leaves text that
no decoder accepts, so a batch that decodes was cut rightly; one that does not is narrowed down, and the few
entries around the trouble (or around the end of the list) are taken one by one. Damage costs the entry it is in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from meshscope.readers import chrome_single
from meshscope.readers.chrome_around import Stop, walk
from meshscope.readers.chrome_metadata import metadata, no_events, repeats_top_level
from meshscope.readers.chrome_single import (
    BAD_DECODE,
    LIST_END,
    NARROW_BYTES,
    Single,
    next_event,
)  # fmt: skip
from meshscope.readers.damage import AFTER_END, DAMAGED, METADATA, SECOND_HEAD

Entry = TypeVar("Entry")

# The list's own key; an event where damage has taken that away.
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[|(?=\{\s*"ph"\s*:\s*")')
_LEADING = re.compile(rb"[ \t\r\n,]*")
_BOUNDARY = re.compile(rb"\}\s*,\s*\{")
_LIST_ENDS_BEFORE_KEY = re.compile(r'\}\s*\]\s*,\s*"\w[\w ]*"\s*:')
_VIEW_BYTES = 1 << 18
_HEAD_LIMIT_BYTES = 1 << 28
_KEPT_BYTES = 256
_BLANK = b" \t\r\n\0"


@dataclass
class Document(Generic[Entry]):
    """``decode`` turns the text of a JSON list into entries or raises ``msgspec.MsgspecError``.

    After :meth:`batches` is exhausted ``metadata`` holds the top-level keys but ``traceEvents``, ``dropped`` and
    ``repaired`` count damage by reason, ``is_complete`` tells whether the list's own end was seen, ``is_closed``
    whether that of the object around it was too, and ``is_bare`` whether the file is a list without such an object.
    """

    blocks: Iterator[bytes | memoryview]
    decode: Callable[[bytes], list[Entry]]
    metadata: dict[str, Any] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    is_complete: bool = False
    is_bare: bool = False
    _rest: bytes = b""
    _searched: int = 0
    _walked: int = 0
    _end: int = -1  # behind the object's brace
    _is_skipping: bool = False  # the rest of an event that is too long
    _is_odd: bool = False  # what follows the list is no JSON object's end

    def __post_init__(self) -> None:
        self._single = Single(self.decode, self.dropped, self.repaired)

    def batches(self) -> Iterator[list[Entry]]:
        """Raises TraceError when there is no ``traceEvents``."""
        self._rest = self._after_head()
        for block in self.blocks:
            self._add(block)
            yield from self._drain(is_all=False)
        yield from self._drain(is_all=True)
        if self.is_complete:
            self._take_end()

    @property
    def is_closed(self) -> bool:
        return self.is_complete and (self.is_bare or self._end >= 0)

    def _add(self, block: bytes | memoryview) -> None:
        self._rest += block

    def _after_head(self) -> bytes:
        text = bytes(next(self.blocks, b"")).removeprefix(b"\xef\xbb\xbf")
        if text.lstrip()[:1] == b"[":
            self.is_bare = True
            return text.lstrip()[1:]
        at = len(text) - len(text.lstrip()) + 1
        while (place := _head(text, at, is_all=False)).last < 0 and len(text) < _HEAD_LIMIT_BYTES:
            block = bytes(next(self.blocks, b""))
            if not block:
                break
            text, at = text + block, place.first
        if place.last < 0:
            place = _head(text, place.first, is_all=True)
        if place.last < 0:
            raise no_events(text)
        if place.is_torn:
            reason = SECOND_HEAD if repeats_top_level(text[: place.last]) else METADATA
            if reason == SECOND_HEAD or not place.is_named:
                self.dropped[reason] += 1
        self._take_metadata(text[: place.first])
        return text[place.last :]

    def _drain(self, *, is_all: bool) -> Iterator[list[Entry]]:
        """Entries of the text at hand; one that is not whole yet waits unless that is all."""
        if self._is_skipping:
            self._skip(is_all=is_all)
        while not self._is_skipping and (not self.is_complete or self._goes_on()):
            whole = is_all or len(self._rest) > chrome_single.LONGEST_ENTRY_BYTES
            end = len(self._rest) if whole else last_boundary(self._rest)
            text, later = self._rest[:end], self._rest[end:]
            while text and not self.is_complete:
                entries, used = self._batch(text, is_all=is_all)
                yield entries
                text = text[used:]
                if not used or self._is_skipping:
                    break
            self._rest = text + later
            if not self.is_complete:
                return

    def _skip(self, *, is_all: bool) -> None:
        """Passes over text up to the next event, or to the list's end."""
        view = self._rest.decode("latin-1")
        at = next_event(view, 0)
        ending = (LIST_END if is_all else _LIST_ENDS_BEFORE_KEY).search(view) if at < 0 else None
        if ending is not None:
            at = view.index("]", ending.start())
        self._is_skipping = at < 0
        self._rest = self._rest[at if at >= 0 else -_KEPT_BYTES :]

    def _goes_on(self) -> bool:
        """Whether events follow the end of the list: two writers, or an end that damage made."""
        if not self._is_past():
            return False
        found = _EVENTS.search(self._rest, self._searched)
        if found is None:
            self._searched = max(self._searched, len(self._rest) - 64)
            if len(self._rest) > chrome_single.LONGEST_ENTRY_BYTES:
                self._take_end()
                self._rest, self._searched = b"", 0
                self._end = min(self._end, 0)
            return False
        self.dropped[SECOND_HEAD if found[0] else DAMAGED] += 1
        if self._end >= 0:
            self._take_metadata(self._rest[: self._end])
        self._rest = self._rest[found.end() :]
        self._searched, self._walked, self._end, self._is_odd = 0, 0, -1, False
        self.is_complete = False
        return True

    def _is_past(self) -> bool:
        """Whether the object around the list has ended, or what follows the list is none of its pairs."""
        if self.is_bare or self._is_odd or self._end >= 0:
            return True
        found = walk(self._rest, self._walked)
        self._walked = self._searched = found.first
        self._is_odd = found.stop not in (Stop.OPEN, Stop.CLOSED)
        if found.stop == Stop.CLOSED:
            self._end = self._searched = found.last
        return found.stop != Stop.OPEN

    def _take_end(self) -> None:
        """What stands behind the list: the rest of the object, and what follows that."""
        end = len(self._rest) if self._end < 0 else self._end
        lost = self.dropped[METADATA]
        if not self.is_bare:
            self._take_metadata(self._rest[:end])
        is_odd = (self._is_odd or self.is_bare) and lost == self.dropped[METADATA]
        if self._rest[0 if is_odd else end :].strip(_BLANK):
            self.dropped[AFTER_END] = 1

    def _batch(self, text: bytes, *, is_all: bool) -> tuple[list[Entry], int]:
        """Entries from the beginning of ``text``, as many as decode at once, and the bytes they took."""
        end = len(text)
        while True:
            try:
                return self.decode(_listed(text, end)), end
            except BAD_DECODE:
                end = last_boundary(text[: end // 2]) if end > NARROW_BYTES else 0
            if end <= 0:
                break
        end = last_boundary(text[:_VIEW_BYTES])
        if end and (found := self._single.renumbered(_listed(text, end))) is not None:
            return found, end
        if len(text) > _VIEW_BYTES:
            entries, used = self._one_by_one(text[:_VIEW_BYTES], is_all=False)
            if used:
                return entries, used
        return self._one_by_one(text, is_all=is_all)

    def _one_by_one(self, text: bytes, *, is_all: bool) -> tuple[list[Entry], int]:
        found = self._single.taken(text, is_all=is_all)
        self.is_complete = self.is_complete or found.is_end
        self._is_skipping = self._is_skipping or found.is_endless
        return found.entries, found.used_bytes

    def _take_metadata(self, text: bytes) -> None:
        found, lost = metadata(text)
        self.metadata.update((key, value) for key, value in found.items() if key != "traceEvents")
        if lost:
            self.dropped[METADATA] += lost


class _Place(NamedTuple):
    """Where the pair that holds the events begins, and where their list does; −1 for the latter until it is seen."""

    first: int
    last: int = -1
    is_torn: bool = False  # the text before it is no pairs
    is_named: bool = True


def _head(text: bytes, at: int, *, is_all: bool) -> _Place:
    """The list of events, from ``at`` on, which is behind the object's brace or one of its pairs."""
    found = walk(text, at)
    if found.stop == Stop.EVENTS:
        return _Place(found.first, found.last)
    if found.stop == Stop.TORN_EVENTS:
        return _Place(found.first, found.last, is_torn=True, is_named=False)
    if found.stop == Stop.CLOSED or (found.stop == Stop.OPEN and not is_all):
        return _Place(found.first)
    # Damage: the first key of that name counts, however deep. Where nothing is found yet, this is begun anew.
    events = _EVENTS.search(text, found.first)
    if events is None:
        return _Place(found.first)
    return _Place(events.start(), events.end(), is_torn=True, is_named=bool(events[0]))


def _listed(text: bytes, end: int) -> bytes:
    """The entries of the first ``end`` bytes as a list of their own, copied once."""
    first = _LEADING.match(text).end()  # type: ignore[union-attr]  # matches the empty text too
    last = end
    while last > first and text[last - 1] in b" \t\r\n,":
        last -= 1
    return b"".join((b"[", memoryview(text)[first : max(first, last)], b"]"))


def last_boundary(text: bytes) -> int:
    """Just after the last entry that another one follows; 0 when there is none."""
    for size in (1 << 13, 1 << 17, len(text)):
        base = max(0, len(text) - size)
        last = None
        for last in _BOUNDARY.finditer(text, base):  # noqa: B007  # only the last one matters
            pass
        if last is not None:
            return last.start() + 1
    return 0
