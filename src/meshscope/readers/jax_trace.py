"""JAX's profile as JSON: ``<host>.trace.json.gz``, and ``perfetto_trace.json.gz``, the same without its metadata.

It is XLA's xplane told again: a process is a plane, a thread a line, and arguments are an event's stats as text. So it
is put back into planes and read as those are. Times are picoseconds divided by a million and written as doubles, which
gives them back exactly. What it lacks: when the profile was made, and every event beyond the first million.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from meshscope.readers.chrome import Document
from meshscope.readers.damage import CUT_SHORT, SECOND_HEAD, packing
from meshscope.readers.reader import Reader
from meshscope.readers.stream import Source
from meshscope.readers.tables import Table
from meshscope.readers.time_bounds import (
    LATEST_NS,
    NEGATIVE,
    NO_DURATION,
    NO_TIME,
    OUT_OF_RANGE,
    RATHER_NANOSECONDS,
    TOO_EARLY,
    TOO_LONG,
)  # fmt: skip
from meshscope.readers.windows import EARLIEST_UNIX_NS
from meshscope.readers.xplane import windows_of
from meshscope.readers.xplane_messages import message
from meshscope.readers.xplane_space import space
from meshscope.spans import Window

MOST_EVENTS = 1_000_000
"""XLA writes no more events than these into its JSON, the earliest; the xplane beside it has them all."""

_JSON = re.compile(rb"\A(\xef\xbb\xbf)?\s*\{")
_PROCESS = re.compile(rb'"process_name"[^{}]*\{\s*"name"\s*:\s*"/(host|device):')
_MARK = b'"highres-ticks"'
_TORCH = re.compile(rb'"(schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"')
_JAX_NAME = re.compile(
    r"^%?(psum|pmax|pmin|pmean|ppermute|pshuffle|pbroadcast|all_gather|reduce_scatter|(ragged_)?all_to_all)\w*(\.\w+)*$"
)
_STATS = ("hlo_op", "device_ordinal", "step_num", "name", "cuda_graph_id")
_NO_JSON = msgspec.Raw(b"")
_EXACT_PS = 1 << 52
_MOST_PS = 1 << 62


class Event(msgspec.Struct, gc=False):
    ph: str | None = None
    name: str | None = None
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: msgspec.Raw = _NO_JSON
    dur: msgspec.Raw = msgspec.Raw(b"0")
    args: Any = None


_decode: Callable[[bytes], list[Event]] = msgspec.json.Decoder(list[Event]).decode


def sniff(head: bytes) -> bool:
    """JSON that has XLA's own mark, or whose processes are called as XLA calls its planes."""
    if _JSON.match(head) is None or _TORCH.search(head) is not None:
        return False
    return _MARK in head or _PROCESS.search(head) is not None


def read(path: Path, *, t0_unix_ns: int | None = None, device_kind: str = "") -> tuple[Window, ...]:
    """See :class:`meshscope.readers.reader.Read`."""
    source, gathered = Source(path), _Gathered()
    document = Document(source.blocks(), _decode)
    for batch in document.batches():
        gathered.take(batch)
    damage = packing(source, is_closed=document.is_closed)
    dropped = (gathered.dropped + document.dropped) | damage
    if not document.is_complete:
        dropped[CUT_SHORT] = dropped[CUT_SHORT] or 1
    found = space(gathered.content())
    windows = windows_of(replace(found, dropped=found.dropped + dropped), path.name, t0_unix_ns)
    if document.dropped[SECOND_HEAD]:
        windows = (_of_several(windows[0]),)
    return tuple(_told(window, gathered, dict(document.repaired)) for window in windows)


def _of_several(window: Window) -> Window:
    """What is told of profiles that lie behind each other in one file: their processes have the same numbers."""
    why = "another trace begins inside this one, and which events are whose cannot be told: give each a file of its own"
    return replace(
        window,
        rank=0,
        device=0,
        rank_from="order",
        device_kind="none",
        start_ns=0,
        end_ns=0,
        steps=(),
        step_ns=window.step_ns[:0],
        spans=window.spans.where(np.zeros(len(window.spans), dtype=np.bool_)),
        counts=replace(window.counts, device=0),
        cannot_say=(("breakdown", why),),
    )


@dataclass(frozen=True)
class _Row:
    name: str
    start_ps: int
    dur_ps: int
    stats: tuple[tuple[str, str], ...]


@dataclass
class _Gathered:
    """Events by process and thread while the file is being read."""

    read: int = 0
    timed: int = 0
    rows: dict[Any, dict[Any, list[_Row]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    processes: dict[Any, str] = field(default_factory=dict)
    threads: dict[tuple[Any, Any], str] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)

    def take(self, events: list[Event]) -> None:
        self.read += len(events)
        for event in events:
            if event.ph == "X":
                self._take_row(event)
            elif event.ph == "M" and isinstance(event.args, dict):
                self._take_name(event, str(event.args.get("name", "")))

    def _take_row(self, event: Event) -> None:
        self.timed += 1
        start_ps, dur_ps = _picoseconds(event.ts), _picoseconds(event.dur)
        if start_ps is None or dur_ps is None:
            self.dropped[NO_TIME if start_ps is None else NO_DURATION] += 1
        elif reason := _why_not(start_ps, dur_ps):
            self.dropped[reason] += 1
        else:
            args = event.args if isinstance(event.args, dict) else {}
            # A name that was shortened for the eye has the instruction's whole text beside it.
            name = str(args.get("long_name") or event.name or "")
            stats = tuple((key, str(args[key])) for key in _STATS if key in args)
            # XLA writes an event without a duration as one picosecond, so that viewers show it.
            self.rows[event.pid][event.tid].append(_Row(name, start_ps, dur_ps if dur_ps > 1 else 0, stats))

    def _take_name(self, event: Event, name: str) -> None:
        if event.name == "process_name":
            self.processes[event.pid] = name
        elif event.name == "thread_name":
            self.threads[event.pid, event.tid] = name

    def content(self) -> bytes:
        """What the xplane would have been: at least one plane, if an empty one."""
        planes = [self._plane(pid) for pid in self.rows] or [message("Plane")(name=b"/host:none").SerializeToString()]
        return b"".join(b"\x0a" + _varint(len(plane)) + plane for plane in planes)

    def _plane(self, pid: Any) -> bytes:
        plane = message("Plane")(name=self.processes.get(pid, "").encode("utf-8", "replace"))
        names, stats = Table(), Table()
        for tid, rows in self.rows[pid].items():
            line = plane.lines.add(name=self.threads.get((pid, tid), "").encode("utf-8", "replace"))
            for row in rows:
                event = line.events.add(metadata_id=names[row.name] + 1, offset_ps=row.start_ps, duration_ps=row.dur_ps)
                for key, value in row.stats:
                    event.stats.add(metadata_id=stats[key] + 1, str_value=value.encode("utf-8", "replace"))
        for table, entries in ((names, plane.event_metadata), (stats, plane.stat_metadata)):
            for name, number in table.items():
                entry = entries.add(key=number + 1)
                entry.value.id, entry.value.name = number + 1, name.encode("utf-8", "replace")
        content: bytes = plane.SerializeToString()
        return content

    @property
    def named_by_jax(self) -> int:
        """How many operations have a name of JAX's own and no text that says what they do."""
        rows = (row for threads in self.rows.values() for rows in threads.values() for row in rows)
        return sum(1 for row in rows if _JAX_NAME.match(row.name))


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes((*digits, value))


def _picoseconds(token: msgspec.Raw) -> int | None:
    """A number of µs as picoseconds, whatever its size; None for what is none. Numbers in quotes are accepted."""
    try:
        value = float(bytes(token).strip(b'"'))
        scaled = value * 1e6
        return round(scaled) if abs(scaled) < _EXACT_PS else int(Decimal(value) * 1_000_000)
    except OverflowError:
        return _MOST_PS if value > 0 else -_MOST_PS
    except (ValueError, ArithmeticError):
        return None


def _why_not(start_ps: int, dur_ps: int) -> str:
    """Why an event cannot be at a time, in the words that are used of every format; "" when it can."""
    if start_ps >= _MOST_PS:
        is_wall_time = EARLIEST_UNIX_NS * 1_000_000 <= start_ps < LATEST_NS * 1_000_000
        return RATHER_NANOSECONDS if is_wall_time else OUT_OF_RANGE
    if start_ps <= -_MOST_PS:
        return TOO_EARLY
    if dur_ps >= _MOST_PS:
        return TOO_LONG
    return NEGATIVE if dur_ps < 0 else ""


def _told(window: Window, gathered: _Gathered, repaired: dict[str, int]) -> Window:
    counts = replace(window.counts, read=gathered.read, repaired=repaired)
    window = replace(window, counts=counts)
    if named := gathered.named_by_jax:
        are = "operation is" if named == 1 else "operations are"
        why = f"{named} {are} named after JAX's own, and the JSON holds no program to say what they do: the xplane does"
        window = replace(window, cannot_say=(*window.cannot_say, ("collectives", why)))
    if gathered.timed < MOST_EVENTS:
        return window
    why = f"the JSON holds {gathered.timed} events, and XLA drops what is beyond {MOST_EVENTS}: open the .xplane.pb"
    return replace(window, cannot_say=(*window.cannot_say, ("events", why)), is_complete=False)


READER = Reader(format="JAX trace JSON", suffixes=(".trace.json.gz", ".json.gz"), sniff=sniff, read=read)
