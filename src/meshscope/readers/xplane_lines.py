"""Lines of an xplane file: gone through in pieces, as often as somebody asks, and never held whole.

A line of a file of gigabytes has millions of events. Once over all of them tells what damage there is, how many events
can be believed and from when to when they go; what is asked of them later looks at those lines again that matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from meshscope.readers.time_bounds import (
    DAY_NS,
    LATEST_NS,
    NEGATIVE,
    OUT_OF_RANGE,
    TOO_EARLY,
    TOO_LONG,
)  # fmt: skip
from meshscope.readers.xplane_content import Content
from meshscope.readers.xplane_days import ALWAYS, Days, largest
from meshscope.readers.xplane_events import Events, Walk, Walked
from meshscope.readers.xplane_messages import message

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NAMELESS = "an event whose name is not in the file"

PIECE_BYTES = 1 << 20


class Keeping:
    """So many bytes of pieces may stay decoded, so that small files are decoded once."""

    def __init__(self, left_bytes: int = 1 << 22) -> None:
        self.left_bytes = left_bytes

    def takes(self, size_bytes: int) -> bool:
        if size_bytes > self.left_bytes:
            return False
        self.left_bytes -= size_bytes
        return True


@dataclass(eq=False)
class RawLine:
    """A line as its file has it. ``count`` events, of which ``believed`` have a name and a time that can be.

    ``first_ns`` and ``last_ns`` bound the starts of those, ``days`` tells how they lie between, ``ids`` are the
    metadata ids that they have; ``dropped`` counts the others by reason.
    """

    content: Content
    place: tuple[int, int]
    walk: Walk
    name: str = ""
    timestamp_ns: int = 0
    count: int = 0
    believed: int = 0
    first_ns: int = ALWAYS[1]
    last_ns: int = ALWAYS[0]
    ids: frozenset[int] = frozenset()
    dropped: Counter[str] = field(default_factory=Counter)
    days: Days = field(default_factory=Days)
    kept: list[Events] | None = None

    def pieces(self) -> Iterator[Events]:
        """All events, some at a time."""
        if self.kept is not None:
            yield from self.kept
            return
        for _, walked in _walked(self.content, *self.place, self.walk):
            if len(walked.events):
                yield walked.events


def raw_line(content: Content, place: tuple[int, int], walk: Walk, named: Ints, keeping: Keeping) -> RawLine:
    """A line after once over it. Raises DecodeError where any of it is no protobuf."""
    line = RawLine(content, place, walk, kept=[] if keeping.takes(place[1] - place[0]) else None)
    shell: list[bytes] = []
    met = _Met(named)
    for piece, walked in _walked(content, *place, walk):
        shell += [piece[first:last] for first, last in walked.others]
        count = len(walked.events)
        line.count += count
        if not count:
            continue
        if line.kept is not None:
            line.kept.append(walked.events)
        metadata, offset_ps, duration_ps = walked.events.columns()
        keep = _believed(metadata, offset_ps, duration_ps, named, line.dropped)
        offset_ps = offset_ps if keep is None else offset_ps[keep]
        if len(offset_ps):
            met.add(metadata if keep is None else metadata[keep])
            line.believed += len(offset_ps)
            line.days.add(offset_ps)
    line.ids = met.ids
    content.passed(place[1] - place[0], line.count)
    told = message("Line").FromString(b"".join(shell))
    line.name, line.timestamp_ns = told.name.decode("utf-8", "replace"), told.timestamp_ns
    if abs(line.timestamp_ns) >= LATEST_NS:
        line.believed = 0
        line.dropped = Counter({OUT_OF_RANGE if line.timestamp_ns > 0 else TOO_EARLY: line.count} if line.count else {})
    elif line.believed:
        line.first_ns, line.last_ns = line.days.bounds(line.timestamp_ns)
    return line


_MOST_FLAGS = 1 << 18


class _Met:
    """Which ids were met, of those that have a name. Flags cost a tenth of sorting; ids that are large are sorted."""

    def __init__(self, named: Ints) -> None:
        is_small = len(named) > 0 and named[0] >= 0 and named[-1] < _MOST_FLAGS
        self._flags = np.zeros(int(named[-1]) + 1, dtype=np.bool_) if is_small else None
        self._others: set[int] = set()

    def add(self, ids: Ints) -> None:
        if self._flags is not None:
            self._flags[ids] = True
        else:
            self._others.update(np.unique(ids).tolist())

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(self._others if self._flags is None else np.flatnonzero(self._flags).tolist())


def _walked(content: Content, at: int, end: int, walk: Walk) -> Iterator[tuple[bytes, Walked]]:
    """A line piece by piece, with the bytes of each. Raises DecodeError."""
    size = PIECE_BYTES
    while at < end:
        piece = content.read(at, min(at + size, end))
        walked = walk(piece)
        if walked.used_bytes:
            yield piece, walked
            at, size = at + walked.used_bytes, PIECE_BYTES
        elif at + len(piece) >= end:
            raise DecodeError("a line ends inside a field")
        else:
            size *= 2


@dataclass(frozen=True, eq=False)
class Piece:
    """Some events of a line that can be believed: times as the file counts them, ``metadata`` ids (shape (n,))."""

    start_ns: Ints
    end_ns: Ints
    metadata: Ints
    events: Events

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: Ints) -> Piece:
        """The events of some numbers."""
        return Piece(self.start_ns[rows], self.end_ns[rows], self.metadata[rows], self.events.take(rows))


@dataclass(frozen=True, eq=False)
class Line:
    """The events of a line that have a name in ``named`` and a time that can be, from ``bounds`` to ``bounds``."""

    raw: RawLine
    named: Ints
    bounds_ns: tuple[int, int] = ALWAYS

    @property
    def name(self) -> str:
        return self.raw.name

    def __len__(self) -> int:
        return self.raw.believed if self._is_inside else sum(map(len, self.pieces()))

    def pieces(self) -> Iterator[Piece]:
        """All of them, some at a time."""
        if not self.raw.believed:
            return
        for events in self.raw.pieces():
            piece = self._piece(events)
            if not self._is_inside:
                first_ns, last_ns = self.bounds_ns
                piece = piece.take(np.flatnonzero((piece.start_ns >= first_ns) & (piece.start_ns <= last_ns)))
            if len(piece):
                yield piece

    @property
    def _is_inside(self) -> bool:
        return self.bounds_ns[0] <= self.raw.first_ns and self.raw.last_ns <= self.bounds_ns[1]

    def _piece(self, events: Events) -> Piece:
        """Picoseconds to ns: the start and the *end* are floored (floored durations would open gaps)."""
        columns = events.columns()
        if self.raw.believed < self.raw.count:
            keep = _believed(*columns, self.named, Counter())
            if keep is not None:
                events = events.take(np.flatnonzero(keep))
                columns = events.columns()
        metadata, offset_ps, duration_ps = columns
        start_ns = offset_ps // 1000
        start_ns += self.raw.timestamp_ns
        end_ns = offset_ps + duration_ps
        end_ns //= 1000
        end_ns += self.raw.timestamp_ns
        return Piece(start_ns, end_ns, metadata, events)


def lines_of(raw: Iterable[RawLine], named: Ints) -> tuple[list[Line], int]:
    """Lines without what lies more than a day from the part of the plane with most events, and how much that is."""
    lines = [Line(one, named) for one in raw]
    believed = [line.raw for line in lines if line.raw.believed]
    first_ns = min((one.first_ns for one in believed), default=0)
    last_ns = max((one.last_ns for one in believed), default=0)
    if last_ns - first_ns <= DAY_NS:
        return lines, 0
    bounds_ns, strays = largest(day for one in believed for day in one.days.since(one.timestamp_ns))
    return [replace(line, bounds_ns=bounds_ns) for line in lines], strays


def _believed(metadata: Ints, offset_ps: Ints, duration_ps: Ints, named: Ints, dropped: Counter[str]) -> Mask | None:
    """Events with a name and a time that can be; None for all of them. Counts the others by reason."""
    keep: Mask | None = None
    for reason, fits in (
        (OUT_OF_RANGE, offset_ps < LATEST_NS),
        (TOO_EARLY, offset_ps > -LATEST_NS),
        (NEGATIVE, duration_ps >= 0),
        (TOO_LONG, duration_ps <= DAY_NS * 1000),
        (NAMELESS, np.isin(metadata, named)),
    ):
        if not fits.all():
            keep = np.ones(len(fits), dtype=bool) if keep is None else keep
            dropped[reason] += int((keep & ~fits).sum())
            keep &= fits
    return keep
