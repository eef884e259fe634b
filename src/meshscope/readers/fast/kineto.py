"""A Kineto file read by the compiled scanner, which hands over to the base decoder what it does not understand.

Events reach the same gathering in the same order either way, so both ways make the same columns of every file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from meshscope.readers.chrome import Document, last_boundary
from meshscope.readers.fast.events_scan import ABSENT, KEYS, Aside, Names, Rows, scan
from meshscope.readers.fast.interning import Interned, nothing_interned, with_room
from meshscope.readers.fast.words import PAD
from meshscope.readers.kineto_columns import Event, Gathering, Part, decode
from meshscope.readers.stream import Room
from meshscope.readers.tables import Table

Small = npt.NDArray[np.int32]

_ROOM = 1 << 14
_LEAST_REACH, _MOST_REACH = 1 << 12, 1 << 22
_MOST_MENDED = 1 << 18


class FastDocument(Document[Event]):
    """A document whose plain events go straight into ``gathering``; its batches hold the others."""

    def __init__(self, blocks: Callable[[Room], Iterator[bytes | memoryview]], gathering: Gathering) -> None:
        super().__init__(blocks(self._room), decode)
        self._gathering, self._scanner = gathering, _Scanner(gathering)
        self._reach = _LEAST_REACH
        self._again = 0

    def _room(self, size: int) -> memoryview:
        """Room behind what is left of the text, which is put there."""
        return self._scanner.room(self._rest, size)

    def _add(self, block: bytes | memoryview) -> None:
        if self.is_complete or self._is_skipping or len(self._rest) + len(block) < self._again:
            super()._add(block)
            return
        if isinstance(block, bytes):
            self._scanner.room(self._rest, len(block))[:] = block
        size = self._scanner.end(len(self._rest) + len(block))
        at = self._taken(size)
        # An event that goes on over many blocks is looked at again only once there is twice as much of it.
        self._again = 2 * size if not at and size > _MOST_REACH else 0
        self._rest = self._scanner.text(at, size)

    def _batch(self, text: bytes, *, is_all: bool) -> tuple[list[Event], int]:
        self._scanner.room(text, 0)
        at = self._taken(self._scanner.end(len(text)))
        return ([], at) if at else super()._batch(text, is_all=is_all)

    def _taken(self, size: int) -> int:
        """Past the events at the beginning of the text at hand that are plain, or no more than unusual."""
        self._gathering.begin(self.metadata)
        at = 0
        while True:
            begun, at = at, self._scanner.take(at, size)
            self._reach = _LEAST_REACH if at - begun > self._reach else min(2 * self._reach, _MOST_REACH)
            after = self._handed_over(at, size)
            if not after:
                return at
            at = after

    def _handed_over(self, at: int, size: int) -> int:
        """Has the base decoder read a little from ``at`` on; past what it took, 0 when it could not."""
        text = self._scanner.text(at, min(size, at + self._reach))
        while not (end := last_boundary(text)):
            if at + self._reach >= size:
                return 0
            self._reach *= 4
            text = self._scanner.text(at, min(size, at + self._reach))
        try:
            events = decode(_listed(text[:end]))
        except (msgspec.MsgspecError, RecursionError):
            end = last_boundary(text[: min(end, _MOST_MENDED)])
            mended = self._single.renumbered(_listed(text[:end])) if end else None
            if mended is None:
                return 0
            events = mended
        self._gathering.take(events)
        return at + end


def _listed(text: bytes) -> bytes:
    return b"[" + text.strip(b" \t\r\n,") + b"]"


class _Codes:
    """From numbers of an :class:`Interned` to those of a table, in order of first appearance."""

    def __init__(self, table: Table, meanings: Callable[[list[bytes]], Iterable[Any]]) -> None:
        self._table, self._meanings = table, meanings
        self._known: Small = np.empty(0, dtype=np.int32)
        self._count = 0

    def of(self, numbers: Small, interned: Interned) -> Small:
        count = int(interned.used[0])
        if count > self._count:
            fresh = self._table.codes(self._meanings(interned.texts(self._count, count)))
            if count > len(self._known):
                self._known = np.concatenate((self._known[: self._count], np.empty(count, dtype=np.int32)))
            self._known[self._count : count] = fresh
            self._count = count
        return self._known[numbers]


class _Scanner:
    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        pair = np.full(8, ABSENT, dtype=np.int32)
        none = nothing_interned
        self._names = Names(none(), none(), none(), none(), pair, pair.view(np.uint8))
        kinds: dict[str, type[np.generic]] = dict.fromkeys(("category", "name", "thread"), np.int32)
        kinds["is_collective"] = np.bool_
        self._rows = Rows(*(np.empty(_ROOM, dtype=kinds.get(name, np.int64)) for name in Rows._fields))
        self._aside = Aside(np.empty(_ROOM, dtype=np.int64), np.empty(_ROOM, dtype=np.int64))
        self._held: npt.NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self._found = np.full(2 * KEYS, ABSENT, dtype=np.int64)
        self._categories = _Codes(gathering.categories, _decoded)
        self._labels = _Codes(gathering.names, _decoded)
        self._threads = _Codes(gathering.threads, self._threads_of)

    def room(self, text: bytes, more: int) -> memoryview:
        """Makes a text the beginning of the one that is scanned, and gives the room for so many bytes behind it."""
        size = len(text) + more
        if size + len(PAD) > len(self._held):
            self._held = np.empty(size + size // 8 + len(PAD), dtype=np.uint8)
            self._held[-len(PAD) :] = 0  # the scanner counts on it, however short the text
        self._held[: len(text)] = np.frombuffer(text, dtype=np.uint8)
        return self._held.data[len(text) : size]

    def end(self, size: int) -> int:
        """Ends the text at hand after so many bytes."""
        self._held[size : size + len(PAD)] = 0
        return size

    def text(self, first: int, last: int) -> bytes:
        """A part of the text at hand."""
        return self._held[first:last].tobytes()

    def take(self, at: int, size: int) -> int:
        """Past the last of the plain events from ``at`` on."""
        while True:
            self._names = self._with_room(size - at)
            after, events, count, aside = scan(self._held, at, self._names, self._rows, self._aside, self._found)
            if not events:
                return at
            self._gathering.scanned(events)
            if count:
                self._take_rows(count)
            if aside:
                self._take_aside(aside)
            at = after

    def _with_room(self, size: int) -> Names:
        grown: dict[str, Any] = {
            name: with_room(getattr(self._names, name), 2 * _ROOM, 2 * size + 8 * _ROOM)
            for name in ("categories", "names", "ids", "threads")
        }
        return self._names._replace(**grown)

    def _take_rows(self, count: int) -> None:
        rows = self._rows._replace(**{name: getattr(self._rows, name)[:count] for name in Rows._fields})
        gathering, names = self._gathering, self._names
        part = Part(count)
        part |= {
            "start_ns": rows.start_ns,
            "dur_ns": rows.dur_ns,
            "category": self._categories.of(rows.category, names.categories),
            "name": self._labels.of(rows.name, names.names),
            "thread": self._threads.of(rows.thread, names.threads),
        }
        is_device = gathering.is_device(part["category"])
        if is_device.any():
            part |= {name: np.where(is_device, getattr(rows, name), -1) for name in ("device", "stream", "correlation")}
        if gathering.has_modules and (is_operator := gathering.is_operator(part["category"])).any():
            part["node"] = np.where(is_operator, rows.node, -1)
        gathering.add_rows(_Events(self.text, rows), part, np.flatnonzero(is_device & rows.is_collective))

    def _take_aside(self, count: int) -> None:
        bounds = zip(self._aside.first[:count].tolist(), self._aside.last[:count].tolist(), strict=True)
        self._gathering.take_others(decode(b"[" + b",".join(self.text(first, last) for first, last in bounds) + b"]"))

    def _threads_of(self, pairs: list[bytes]) -> Iterator[tuple[Any, Any]]:
        ids = self._names.ids.texts(0, int(self._names.ids.used[0]))
        for pair in pairs:
            process, thread = np.frombuffer(pair, dtype=np.int32).tolist()
            (event,) = decode(b'[{"pid":' + ids[process] + b',"tid":' + ids[thread] + b"}]")
            yield event.pid, event.tid


def _decoded(texts: list[bytes]) -> list[Any]:
    found: list[Any] = msgspec.json.decode(b"[" + b",".join(texts) + b"]")
    return found


class _Events:
    """The events of rows, decoded when they are asked for."""

    def __init__(self, text: Callable[[int, int], bytes], rows: Rows) -> None:
        self._text, self._rows = text, rows

    def __getitem__(self, row: int) -> Event:
        (event,) = decode(b"[" + self._text(int(self._rows.first[row]), int(self._rows.last[row])) + b"]")
        return event
