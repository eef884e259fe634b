"""An xplane file as planes and lines with times in ns; what its messages hold, made easy to ask for.

The file is a list of planes, each behind its length. They are walked here and decoded one by one, so a file cut
short by a kill still gives every plane that was written whole. A plane that does not decode is walked in turn: its
lines count as far as they are whole, and only with the names of what happened on them, which come after them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from meshscope import fast
from meshscope.errors import TraceError
from meshscope.readers.chrome import CUT_SHORT
from meshscope.readers.tables import Table
from meshscope.readers.time_bounds import (
    DAY_NS,
    LATEST_NS,
    NEGATIVE,
    NO_TIME,
    STRAY,
    TOO_LONG,
    is_wide,
    strays,
)  # fmt: skip
from meshscope.readers.xplane_messages import message

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

NOT_A_PLANE = "a plane that is not protobuf"
NOT_A_PART = "a part of a plane that is not protobuf"
NO_FIELD = "bytes that are no protobuf field"
NAMELESS = "an event whose name is not in the file"

_PLANE, _VARINT, _FIXED64, _LENGTH, _FIXED32 = 1, 0, 1, 2, 5
_LARGEST_BYTES = 1 << 31
_INSTRUCTION = re.compile(r"^%?[a-z][\w.-]*$")
_REPLACED = b"\xef\xbf\xbd"


class Told(NamedTuple):
    """One value for each of some rows: ``values[codes]``, −1 for none. Values stand in order of first appearance."""

    codes: Codes
    values: tuple[Any, ...]


class Events(Protocol):
    """The n events of one line."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Any:
        """The message of one."""

    def take(self, rows: Ints) -> Events:
        """The events of some numbers."""

    def columns(self) -> tuple[Ints, Ints, Ints]:
        """``metadata_id``, ``offset_ps`` and ``duration_ps``, each of shape (n,)."""

    def carrying(self, rows: Ints, stat: int) -> npt.NDArray[np.bool_]:
        """Which rows carry a stat."""

    def stats(self, plane: Plane, rows: Ints, stat: int) -> Told:
        """The value of a stat in each row; the last where a row carries several."""


class Messages:
    """Events as protobuf decoded them."""

    def __init__(self, events: Any) -> None:
        self._events = events

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, row: int, /) -> Any:
        return self._events[row]

    def take(self, rows: Ints) -> Messages:
        return Messages([self._events[row] for row in rows.tolist()])

    def columns(self) -> tuple[Ints, Ints, Ints]:
        return self._column("metadata_id"), self._column("offset_ps"), self._column("duration_ps")

    def _column(self, field: str) -> Ints:
        return np.fromiter(map(attrgetter(field), self._events), dtype=np.int64, count=len(self._events))

    def carrying(self, rows: Ints, stat: int) -> npt.NDArray[np.bool_]:
        found = (any(one.metadata_id == stat for one in self._events[row].stats) for row in rows.tolist())
        return np.fromiter(found, dtype=np.bool_, count=len(rows))

    def stats(self, plane: Plane, rows: Ints, stat: int) -> Told:
        table = Table()
        codes = np.full(len(rows), -1, dtype=np.int32)
        for place, row in enumerate(rows.tolist()):
            carried = [one for one in self._events[row].stats if one.metadata_id == stat]
            if carried:
                value = plane.value(carried[-1])
                codes[place] = table[type(value), value]  # 1 and 1.0 are two
        return Told(codes, tuple(value for _, value in table))


class RawLine(NamedTuple):
    """A line as its file has it."""

    name: str
    timestamp_ns: int
    events: Events


@dataclass(frozen=True, eq=False)
class Line:
    """One line of a plane: n events, times as the file counts them, ``metadata`` ids (all of shape (n,))."""

    name: str
    start_ns: Ints
    end_ns: Ints
    metadata: Ints
    events: Events

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: Ints) -> Line:
        """The events of some numbers."""
        return Line(self.name, self.start_ns[rows], self.end_ns[rows], self.metadata[rows], self.events.take(rows))


@dataclass(frozen=True, eq=False)
class Plane:
    """One plane. Event and stat names are looked up by metadata id.

    ``dropped`` counts, by reason, the parts that do not decode and, once ``lines`` have been asked for, their events
    that cannot be so.
    """

    message: Any
    dropped: Counter[str] = field(default_factory=Counter)
    scanned: tuple[RawLine, ...] | None = None

    @cached_property
    def raw_lines(self) -> tuple[RawLine, ...]:
        """The lines as they stand in the file, from the message unless they were scanned apart from it."""
        if self.scanned is not None:
            return self.scanned
        return tuple(RawLine(text(line.name), line.timestamp_ns, Messages(line.events)) for line in self.message.lines)

    @cached_property
    def name(self) -> str:
        return text(self.message.name)

    @cached_property
    def event_names(self) -> dict[int, str]:
        entries = self.message.event_metadata
        return {entry.key or entry.value.id: text(entry.value.name) for entry in entries}

    @cached_property
    def stat_names(self) -> dict[int, str]:
        return {entry.key or entry.value.id: text(entry.value.name) for entry in self.message.stat_metadata}

    @cached_property
    def stat_ids(self) -> dict[str, int]:
        return {name: number for number, name in self.stat_names.items()}

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The lines, without events whose time or name cannot be told."""
        named = np.array(sorted(self.event_names), dtype=np.int64)
        return tuple(_lines(self.raw_lines, named, self.dropped))

    def stats(self, owner: Any) -> dict[str, Any]:
        """The stats of an event or of the plane itself, by name; references resolved."""
        return {self.stat_names.get(stat.metadata_id, ""): self.value(stat) for stat in owner.stats}

    def names(self, line: Line) -> Told:
        """The names of a line's events."""
        numbers, first, codes = np.unique(line.metadata, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        names = tuple(self.event_names.get(number, "") for number in numbers[order].tolist())
        return Told(place[codes.reshape(-1)], names)

    def rows_with(self, line: Line, *stats: int | None) -> Ints:
        """Events of a line that carry all of some stats, by stat id; none when an id is None.

        Going through stats is costly, and most events are a thread pool's: of names that no instruction can have
        only the first event is looked at.
        """
        wanted = [stat for stat in stats if stat is not None]
        if len(wanted) < len(stats):
            return np.empty(0, dtype=np.int64)
        numbers, first = np.unique(line.metadata, return_index=True)
        is_open = [_INSTRUCTION.match(self.event_names.get(number, "")) is not None for number in numbers.tolist()]
        is_candidate = np.array(is_open, dtype=np.bool_) | _carrying(line, first, wanted)
        rows = np.flatnonzero(np.isin(line.metadata, numbers[is_candidate]))
        return rows[_carrying(line, rows, wanted)]

    def value(self, stat: Any) -> Any:
        which = stat.WhichOneof("value")
        if which is None:
            return None
        value = getattr(stat, which)
        if which == "ref_value":
            return self.stat_names.get(value, "")
        return text(value) if isinstance(value, bytes) else value

    @staticmethod
    def number(value: Any) -> int | None:
        """The value of a stat that counts something, below 2³¹; None where it is anything else."""
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        return value if isinstance(value, int) and 0 <= value < 2**31 else None


@dataclass(frozen=True, eq=False)
class Space:
    """The planes of a file. ``dropped`` counts damage by reason; ``read`` is the number of events in it."""

    planes: tuple[Plane, ...]
    dropped: Counter[str] = field(default_factory=Counter)

    @cached_property
    def read(self) -> int:
        return sum(len(line.events) for plane in self.planes for line in plane.raw_lines)

    @property
    def is_complete(self) -> bool:
        return CUT_SHORT not in self.dropped and NO_FIELD not in self.dropped

    @cached_property
    def start_unix_ns(self) -> int:
        """When the profiler started, unix ns; 0 where the file does not say."""
        for plane in self.planes:
            if plane.name == "Task Environment":
                started = plane.stats(plane.message).get("profile_start_time", 0)
                return started if isinstance(started, int) and 0 <= started < LATEST_NS else 0
        return 0


def space(content: bytes) -> Space:
    """Raises TraceError when no plane can be decoded."""
    dropped: Counter[str] = Counter()
    planes = []
    is_fast = len(content) < _LARGEST_BYTES and fast.is_worth(len(content), fast.WORTH_BYTES)
    for number, part, is_whole in _fields(memoryview(content), dropped):
        plane = None
        if number == _PLANE and is_whole and is_fast:
            plane = _scanned(part)
        if number == _PLANE and plane is None:
            plane = _plane(part, dropped, is_whole=is_whole)
        if plane is not None:
            planes.append(plane)
    if not planes:
        raise _unreadable(content)
    return Space(tuple(planes), dropped)


def _scanned(part: memoryview) -> Plane | None:
    """A whole plane whose lines stay as they lie; None where there is anything odd about it."""
    from meshscope.readers.fast.xplane import plane

    with suppress(DecodeError):
        return plane(part)
    return None


def _plane(part: memoryview, dropped: Counter[str], *, is_whole: bool) -> Plane | None:
    """The plane as far as it decodes. Of one that is cut off nothing is kept unless every event has its name."""
    if is_whole:
        with suppress(DecodeError):
            return Plane(message("Plane").FromString(bytes(part)))
    found, losses = _decoded(part)
    if not is_whole:
        plane = Plane(found)
        return plane if any(map(len, plane.lines)) and NAMELESS not in plane.dropped else None
    if not found.name or not found.event_metadata:
        dropped[NOT_A_PLANE] += 1
        return None
    return Plane(found, Counter({NOT_A_PART: max(losses, 1)}))


def _decoded(part: memoryview) -> tuple[Any, int]:
    """A plane's message from those of its fields that decode, and how many do not."""
    found = message("Plane")()
    ends: Counter[str] = Counter()
    losses = 0
    for _, one, is_whole in _fields(part, ends, with_keys=True):
        try:
            if is_whole:
                found.MergeFrom(message("Plane").FromString(bytes(one)))
        except DecodeError:
            losses += 1
    return found, losses + sum(ends.values())


def _unreadable(content: bytes) -> TraceError:
    if content.count(_REPLACED, 0, 1 << 20) > 100:
        return TraceError(
            "The protobuf was destroyed: it was converted as if it were UTF-8 text.",
            hint="Copy the original .xplane.pb again, in binary mode.",
        )
    return TraceError("This is no xplane protobuf.", hint="Give the .xplane.pb under plugins/profile/<run>/.")


def _fields(
    content: memoryview, dropped: Counter[str], *, with_keys: bool = False
) -> Iterator[tuple[int, memoryview, bool]]:
    """Each field's number, its bytes, and whether they are all there; the last one may not be.

    Stops at bytes that are no field. ``with_keys`` gives the bytes with the key and length before them.
    """
    at = 0
    while at < len(content):
        begin = at
        try:
            key, at = _varint(content, at)
            size, at = _size(content, at, key & 7)
        except IndexError:
            dropped[CUT_SHORT] += 1
            return
        except ValueError:
            dropped[NO_FIELD] += 1
            return
        is_whole = at + size <= len(content)
        if not is_whole:
            dropped[CUT_SHORT] += 1
        if key & 7 == _LENGTH:
            yield key >> 3, content[begin if with_keys else at : at + size], is_whole
        at += size


def _size(content: memoryview, at: int, wire: int) -> tuple[int, int]:
    if wire == _LENGTH:
        return _varint(content, at)
    if wire == _VARINT:
        return 0, _varint(content, at)[1]
    sizes = {_FIXED64: 8, _FIXED32: 4}
    if wire not in sizes:
        raise ValueError(wire)
    return sizes[wire], at


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a varint has at most ten bytes")


def _lines(lines: Iterable[RawLine], named: Ints, dropped: Counter[str]) -> Iterator[Line]:
    """Lines without the events that cannot be so. Those years from the others of the plane are among them."""
    found = [_line(line, named, dropped) for line in lines]
    start_ns = np.concatenate([line.start_ns for line in found]) if found else np.empty(0, dtype=np.int64)
    if not is_wide(start_ns):
        yield from found
        return
    apart = strays(start_ns, np.ones(len(start_ns), dtype=bool))
    dropped[STRAY] += int(apart.sum())
    at = 0
    for line in found:
        yield line.take(np.flatnonzero(~apart[at : at + len(line)]))
        at += len(line)


def _line(line: RawLine, named: Ints, dropped: Counter[str]) -> Line:
    """Picoseconds to ns: the start and the *end* are floored (floored durations would open gaps)."""
    events = line.events
    metadata, offset_ps, duration_ps = events.columns()
    is_timed = (offset_ps > -LATEST_NS) & (offset_ps < LATEST_NS) & (abs(line.timestamp_ns) < LATEST_NS)
    keep = np.ones(len(events), dtype=bool)
    for reason, fits in (
        (NO_TIME, is_timed),
        (NEGATIVE, duration_ps >= 0),
        (TOO_LONG, duration_ps <= DAY_NS * 1000),
        (NAMELESS, np.isin(metadata, named)),
    ):
        if not fits.all():
            dropped[reason] += int((keep & ~fits).sum())
            keep &= fits
    found = Line(
        name=line.name,
        start_ns=line.timestamp_ns + offset_ps // 1000,
        end_ns=line.timestamp_ns + (offset_ps + duration_ps) // 1000,
        metadata=metadata,
        events=events,
    )
    return found if keep.all() else found.take(np.flatnonzero(keep))


def _carrying(line: Line, rows: Ints, stats: list[int]) -> npt.NDArray[np.bool_]:
    """Which rows carry all of some stats."""
    found = np.ones(len(rows), dtype=np.bool_)
    for stat in stats:
        found[found] = line.events.carrying(rows[found], stat)
    return found


def text(raw: bytes) -> str:
    """A name, which need not be UTF-8."""
    return raw.decode("utf-8", "replace")
