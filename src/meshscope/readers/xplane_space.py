"""An xplane file as planes and lines with times in ns; what its messages hold, made easy to ask for.

The file is a list of planes, each behind its length. A plane's names and stats are decoded once; its lines, which are
nearly all of a file, are gone through in pieces (:mod:`meshscope.readers.xplane_lines`) and never held whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from meshscope import fast
from meshscope.readers import xplane_events
from meshscope.readers.damage import CUT_SHORT
from meshscope.readers.time_bounds import LATEST_NS, STRAY
from meshscope.readers.xplane_content import Content
from meshscope.readers.xplane_damage import NOT_A_PART, NOT_A_PLANE, merged, unreadable
from meshscope.readers.xplane_events import Told, Walk
from meshscope.readers.xplane_lines import NAMELESS, Keeping, Line, Piece, RawLine, lines_of, raw_line
from meshscope.readers.xplane_messages import message
from meshscope.readers.xplane_wire import LENGTH, NO_FIELD, fields

Ints = npt.NDArray[np.int64]

_PLANES, _LINES, _EVENT_NAMES = 1 << 3 | LENGTH, 3 << 3 | LENGTH, 4 << 3 | LENGTH


@dataclass(frozen=True, eq=False)
class Plane:
    """One plane. ``message`` is its own name and stats; event and stat names are looked up by metadata id.

    ``dropped`` counts, by reason, the parts that do not decode and, once ``lines`` have been asked for, their events
    that cannot be so. ``places`` is where the entries of event names lie in ``content``.
    """

    content: Content
    message: Any
    raw_lines: tuple[RawLine, ...]
    event_names: dict[int, str]
    places: npt.NDArray[np.int64]
    dropped: Counter[str] = field(default_factory=Counter)

    @cached_property
    def name(self) -> str:
        return text(self.message.name)

    @property
    def is_sound(self) -> bool:
        """Whether what does not decode has left a plane: its name, and names of events."""
        return not self.dropped[NOT_A_PART] or bool(self.message.name and self.event_names)

    @property
    def is_named(self) -> bool:
        """Whether there are events, and each has its name."""
        return any(line.believed for line in self.raw_lines) and not any(
            NAMELESS in ln.dropped for ln in self.raw_lines
        )

    @cached_property
    def stat_names(self) -> dict[int, str]:
        return {entry.key or entry.value.id: text(entry.value.name) for entry in self.message.stat_metadata}

    @cached_property
    def stat_ids(self) -> dict[str, int]:
        return {name: number for number, name in self.stat_names.items()}

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The lines, without events whose time or name cannot be told."""
        for line in self.raw_lines:
            self.dropped.update(line.dropped)
        lines, strays = lines_of(self.raw_lines, numbers(self.event_names))
        if strays:
            self.dropped[STRAY] += strays
        return tuple(lines)

    def event_entries(self) -> Iterator[Any]:
        """The entries of event names, with all that they hold beside a name; decoded anew."""
        for first, last in self.places.tolist():
            yield message("EventEntry").FromString(self.content.read(first, last))

    def stats(self, owner: Any) -> dict[str, Any]:
        """The stats of the plane itself or of an entry, by name; references resolved."""
        return {self.stat_names.get(stat.metadata_id, ""): self.value(stat) for stat in owner.stats}

    def names(self, piece: Piece) -> Told:
        """The names of a piece's events."""
        found, first, codes = np.unique(piece.metadata, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        names = tuple(self.event_names.get(number, "") for number in found[order].tolist())
        return Told(place[codes.reshape(-1)], names)

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
        return sum(line.count for plane in self.planes for line in plane.raw_lines)

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


def space(content: Content | bytes) -> Space:
    """The planes, each line of them gone through once. Raises TraceError when no plane can be decoded."""
    content = Content.of(content) if isinstance(content, bytes) else content
    dropped: Counter[str] = Counter()
    walks, keeping = _walks(len(content)), Keeping()
    planes = []
    for one, is_whole in fields(content, 0, len(content), dropped):
        if one.key == _PLANES:
            plane = _Parts(content, one.first, min(one.last, len(content))).plane(walks, keeping)
            if not is_whole:
                plane.dropped.clear()
            if plane.is_sound if is_whole else plane.is_named:
                planes.append(plane)
            elif is_whole:
                dropped[NOT_A_PLANE] += 1
    if not planes:
        raise unreadable(content)
    return Space(tuple(planes), dropped)


def _walks(size_bytes: int) -> tuple[Walk, ...]:
    """How to go over a line: what one finds odd is left to the next."""
    if not fast.is_worth(size_bytes, fast.WORTH_BYTES):
        return (xplane_events.walk,)
    from meshscope.readers.fast.xplane import walk

    return walk, xplane_events.walk


class _Parts:
    """The fields of a plane, told apart; lines wait until the names are known, which come after them."""

    def __init__(self, content: Content, first: int, last: int) -> None:
        self._content = content
        self._lines: list[tuple[int, int]] = []
        self._names: dict[int, str] = {}
        self._places: list[tuple[int, int]] = []
        self._others: list[bytes] = []
        self._size = last - first
        ends: Counter[str] = Counter()
        self._losses = 0
        for one, is_whole in fields(content, first, last, ends):
            if not is_whole:
                continue
            if one.key == _LINES:
                self._lines.append((one.first, one.last))
            elif one.key == _EVENT_NAMES:
                self._take_name(one.first, one.last)
            else:
                self._others.append(content.read(one.begin, one.last))
        self._losses += ends.total()

    def _take_name(self, first: int, last: int) -> None:
        try:
            entry = message("EventEntry").FromString(self._content.read(first, last))
        except DecodeError:
            self._losses += 1
            return
        self._names[entry.key or entry.value.id] = text(entry.value.name)
        self._places.append((first, last))

    def plane(self, walks: tuple[Walk, ...], keeping: Keeping) -> Plane:
        """The plane of what decodes."""
        shell, losses = merged("Plane", self._others)
        named = numbers(self._names)
        found = [_line(self._content, place, walks, named, keeping) for place in self._lines]
        lines = tuple(line for line in found if line is not None)
        self._content.passed(self._size - sum(last - first for first, last in self._lines))
        losses += self._losses + len(found) - len(lines)
        dropped = Counter({NOT_A_PART: losses} if losses else {})
        places = np.array(self._places, dtype=np.int64).reshape(-1, 2)
        return Plane(self._content, shell, lines, self._names, places, dropped)


def _line(
    content: Content, place: tuple[int, int], walks: tuple[Walk, ...], named: Ints, keeping: Keeping
) -> RawLine | None:
    for walk in walks:
        with suppress(DecodeError):
            return raw_line(content, place, walk, named, keeping)
    return None


def numbers(names: dict[int, str]) -> Ints:
    """The metadata ids that have a name, in order."""
    return np.array(sorted(names), dtype=np.int64)


def text(raw: bytes) -> str:
    """A name, which need not be UTF-8."""
    return raw.decode("utf-8", "replace")
