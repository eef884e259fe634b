"""An xplane file as planes and lines with times in ns; what its messages hold, made easy to ask for.

The file is a list of planes, each behind its length. They are walked here and decoded one by one, so a file cut
short by a kill still gives every plane that was written whole. A plane that does not decode is walked in turn: its
lines count as far as they are whole, and only with the names of what happened on them, which come after them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from meshscope.errors import TraceError
from meshscope.readers.chrome import CUT_SHORT
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

NOT_A_PLANE = "a plane that is not protobuf"
NOT_A_PART = "a part of a plane that is not protobuf"
NO_FIELD = "bytes that are no protobuf field"
NAMELESS = "an event whose name is not in the file"

_PLANE, _VARINT, _FIXED64, _LENGTH, _FIXED32 = 1, 0, 1, 2, 5
_INSTRUCTION = re.compile(r"^%?[a-z][\w.-]*$")
_REPLACED = b"\xef\xbf\xbd"


@dataclass(frozen=True, eq=False)
class Line:
    """One line of a plane: n events, times as the file counts them, ``metadata`` ids (all of shape (n,)), messages."""

    name: str
    start_ns: Ints
    end_ns: Ints
    metadata: Ints
    events: Any

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: Ints) -> Line:
        """The events of some numbers."""
        events = [self.events[row] for row in rows.tolist()]
        return Line(self.name, self.start_ns[rows], self.end_ns[rows], self.metadata[rows], events)


@dataclass(frozen=True, eq=False)
class Plane:
    """One plane. Event and stat names are looked up by metadata id.

    ``dropped`` counts, by reason, the parts that do not decode and, once ``lines`` have been asked for, their events
    that cannot be so.
    """

    message: Any
    dropped: Counter[str] = field(default_factory=Counter)

    @cached_property
    def name(self) -> str:
        return _text(self.message.name)

    @cached_property
    def event_names(self) -> dict[int, str]:
        entries = self.message.event_metadata
        return {entry.key or entry.value.id: _text(entry.value.name) for entry in entries}

    @cached_property
    def stat_names(self) -> dict[int, str]:
        return {entry.key or entry.value.id: _text(entry.value.name) for entry in self.message.stat_metadata}

    @cached_property
    def stat_ids(self) -> dict[str, int]:
        return {name: number for number, name in self.stat_names.items()}

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The lines, without events whose time or name cannot be told."""
        named = np.array(sorted(self.event_names), dtype=np.int64)
        return tuple(_lines(self.message.lines, named, self.dropped))

    def stats(self, owner: Any) -> dict[str, Any]:
        """The stats of an event or of the plane itself, by name; references resolved."""
        return {self.stat_names.get(stat.metadata_id, ""): self.value(stat) for stat in owner.stats}

    def names(self, line: Line) -> list[str]:
        """The names of a line's events, in order."""
        return [self.event_names.get(number, "") for number in line.metadata.tolist()]

    def rows_with(self, line: Line, *stats: int | None) -> Ints:
        """Events of a line that carry all of some stats, by stat id; none when an id is None.

        Going through stats is costly, and most events are a thread pool's: of names that no instruction can have
        only the first event is looked at.
        """
        wanted = set(stats)
        numbers, first = np.unique(line.metadata, return_index=True)
        is_open = [_INSTRUCTION.match(self.event_names.get(number, "")) is not None for number in numbers.tolist()]
        candidates = [
            number
            for number, row, is_any in zip(numbers.tolist(), first.tolist(), is_open, strict=True)
            if is_any or _carries(line.events[row], wanted)
        ]
        rows = np.flatnonzero(np.isin(line.metadata, candidates))
        kept = [row for row in rows.tolist() if _carries(line.events[row], wanted)]
        return np.array(kept, dtype=np.int64)

    def value(self, stat: Any) -> Any:
        which = stat.WhichOneof("value")
        if which is None:
            return None
        value = getattr(stat, which)
        if which == "ref_value":
            return self.stat_names.get(value, "")
        return _text(value) if isinstance(value, bytes) else value

    def number(self, stat: Any) -> int | None:
        """A stat that counts something, below 2³¹; None where it is anything else."""
        value = self.value(stat)
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
        return sum(len(line.events) for plane in self.planes for line in plane.message.lines)

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
    for number, part, is_whole in _fields(memoryview(content), dropped):
        plane = _plane(part, dropped, is_whole=is_whole) if number == _PLANE else None
        if plane is not None:
            planes.append(plane)
    if not planes:
        raise _unreadable(content)
    return Space(tuple(planes), dropped)


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


def _lines(lines: Any, named: Ints, dropped: Counter[str]) -> Iterator[Line]:
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


def _line(line: Any, named: Ints, dropped: Counter[str]) -> Line:
    """Picoseconds to ns: the start and the *end* are floored (floored durations would open gaps)."""
    events = line.events
    offset_ps = np.fromiter((event.offset_ps for event in events), dtype=np.int64, count=len(events))
    duration_ps = np.fromiter((event.duration_ps for event in events), dtype=np.int64, count=len(events))
    metadata = np.fromiter((event.metadata_id for event in events), dtype=np.int64, count=len(events))
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
        name=_text(line.name),
        start_ns=line.timestamp_ns + offset_ps // 1000,
        end_ns=line.timestamp_ns + (offset_ps + duration_ps) // 1000,
        metadata=metadata,
        events=events,
    )
    return found if keep.all() else found.take(np.flatnonzero(keep))


def _carries(event: Any, stats: set[int | None]) -> bool:
    return stats <= {stat.metadata_id for stat in event.stats}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
