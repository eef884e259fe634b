"""A Kineto file as columns: one row per complete event (``ph: X``), plus allocator events and thread names.

Only what an answer needs is decoded; arguments are looked at where their category says they matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from meshscope import fast
from meshscope.errors import TraceError
from meshscope.readers.chrome import Document
from meshscope.readers.damage import CUT_SHORT, DAMAGED, ENDLESS, NOT_AN_EVENT, packing
from meshscope.readers.decimals import nanoseconds
from meshscope.readers.growing import Growing, taken
from meshscope.readers.kineto_inputs import PASSING, peer
from meshscope.readers.kineto_pairs import pairs
from meshscope.readers.meter import advance
from meshscope.readers.sizes import itemsize, message
from meshscope.readers.stream import Source
from meshscope.readers.tables import Flags, Table

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Thread = tuple[Any, Any]

KERNEL = ("kernel",)
COPY = ("gpu_memcpy", "gpu_memset", "memcpy", "memset")
RUNTIME = ("cuda_runtime", "cuda_driver", "runtime", "privateuse1_runtime", "xpu_runtime")
_OPERATOR = ("cpu_op", "operator")
_COMMUNICATION = ("nccl:", "gloo:", "mpi:", "ucc:", "c10d::", "_c10d_functional")
_HALF_PHASES = frozenset("BE")
_OTHER_PHASES = _HALF_PHASES | frozenset("Mi")
_NAMES_PER_THREAD = 16
_CHUNK = 1 << 18
_NO_JSON = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False):
    """The arguments that are read; any type is accepted, since exporters differ."""

    stream: Any = None
    device: Any = None
    correlation: Any = None
    collective: Any = msgspec.field(name="Collective name", default=None)
    in_elements: Any = msgspec.field(name="In msg nelems", default=None)
    out_elements: Any = msgspec.field(name="Out msg nelems", default=None)
    dtype: Any = None
    group: Any = msgspec.field(name="Process Group Name", default=None)
    sequence: Any = msgspec.field(name="Seq", default=None)
    node: Any = msgspec.field(name="Sequence number", default=None)
    ranks: Any = msgspec.field(name="Process Group Ranks", default=None)
    source: Any = msgspec.field(name="Src Rank", default=None)
    target: Any = msgspec.field(name="Dst Rank", default=None)
    values: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=_NO_JSON)
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=_NO_JSON)
    types: msgspec.Raw = msgspec.field(name="Input type", default=_NO_JSON)
    total: Any = msgspec.field(name="Total Allocated", default=None)
    device_type: Any = msgspec.field(name="Device Type", default=None)
    device_id: Any = msgspec.field(name="Device Id", default=None)
    label: Any = msgspec.field(name="name", default=None)


class Event(msgspec.Struct, gc=False):
    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    ts: msgspec.Raw = _NO_JSON
    dur: msgspec.Raw = _NO_JSON
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    args: Args | None = None


_NO_ARGS = Args()
decode: Callable[[bytes], list[Event]] = msgspec.json.Decoder(list[Event]).decode
"""The events of a JSON list. Raises ``msgspec.MsgspecError``."""


@dataclass(frozen=True, eq=False)
class Columns:
    """n complete events as columns of shape (n,), times in ns as the file counts them (its base not yet added).

    As scanned, a time that is missing or no number is UNKNOWN_NS, and nothing is said of what can be believed:
    :func:`meshscope.readers.kineto_repairs.repaired` does that, for every scanner alike.
    ``category`` (lower case), ``name`` and ``thread`` index their tables; the others are −1 where not said.
    ``node`` is the number that autograd gave an operator and its backward function, in a trace with modules only.
    ``memory_*`` are the m allocator events; ``device_type`` is 0 for host memory. ``doubts`` are what mending leaves
    uncertain. ``peer`` is the other rank of a send or receive as it stands: a kernel's is the rank of the job, a call's
    (``c10d::send``) its number within the group. ``group_ranks`` is what collectives say of their group's ranks, as it
    stands, by the group's name.
    """

    start_ns: Ints
    dur_ns: Ints
    category: Small
    name: Small
    thread: Small
    device: Ints
    stream: Ints
    correlation: Ints
    sequence: Ints
    node: Ints
    elements: Ints
    size_bytes: Ints
    collective: Small
    group: Small
    dtype: Small
    peer: Ints
    memory_time_ns: Ints
    memory_total_bytes: Ints
    memory_device_type: Ints
    memory_device: Ints
    categories: tuple[str, ...]
    names: tuple[str, ...]
    threads: tuple[Thread, ...]
    collectives: tuple[str, ...]
    groups: tuple[str, ...]
    dtypes: tuple[str, ...]
    thread_names: dict[Thread, tuple[str, ...]]
    metadata: dict[str, Any]
    read: int
    dropped: dict[str, int]
    repaired: dict[str, int]
    is_complete: bool
    doubts: tuple[tuple[str, str], ...] = ()
    group_ranks: dict[str, object] = field(default_factory=dict)

    def is_of(self, categories: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        """Which rows are of one of the categories, shape (n,)."""
        flags = np.array([category in categories for category in self.categories], dtype=np.bool_)
        return flags[self.category] if len(flags) else np.zeros(len(self.category), dtype=np.bool_)

    def kept(self, rows: npt.NDArray[np.bool_] | Ints) -> Columns:
        """Some rows, in the order of their numbers. These columns are used up: one after another is let go."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        columns: dict[str, Any] = {}
        for name in PER_ROW:
            columns[name] = taken(getattr(self, name), numbers)
            object.__setattr__(self, name, columns[name])
        return replace(self, **columns)

    def let_go(self, *names: str) -> None:
        """Gives up columns that nobody will ask for again."""
        for name in names:
            object.__setattr__(self, name, getattr(self, name)[:0].copy())

    def by_start(self) -> Columns:
        """The rows in order of their start; of those that start at once, as in the file. These columns are used up."""
        start_ns = self.start_ns
        if (start_ns[1:] >= start_ns[:-1]).all():
            return self
        order = np.argsort(start_ns, kind="stable")
        del start_ns
        return self.kept(order)


PER_ROW = ("start_ns", "dur_ns", "category", "name", "thread", "device", "stream", "correlation", "sequence",
            "node", "elements", "size_bytes", "collective", "group", "dtype", "peer")  # fmt: skip
PER_ALLOCATION = ("memory_time_ns", "memory_total_bytes", "memory_device_type", "memory_device")
_INT32 = frozenset({"category", "name", "thread", "collective", "group", "dtype"})
_NARROW = frozenset(
    {"device", "stream", "correlation", "node", "elements", "peer"}
)  # wider only where a number needs it


class Part(dict[str, npt.NDArray[Any]]):
    """Columns of some rows; one that is not there is −1 all over, and made when it is asked for."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, name: str) -> npt.NDArray[Any]:
        self[name] = np.full(self._count, -1, dtype=np.int32 if name in _INT32 else np.int64)
        return self[name]


class Rows(Protocol):
    """Events of rows by number."""

    def __getitem__(self, row: int, /) -> Event: ...


class Gathering:
    """Columns while a file is being read."""

    def __init__(self) -> None:
        self.parts = {
            name: Growing(np.int32 if name in _INT32 else np.int64, is_narrow=name in _NARROW)
            for name in PER_ROW + PER_ALLOCATION
        }
        self.categories, self.names, self.threads = Table(), Table(), Table()
        self.collectives, self.groups, self.dtypes = Table(), Table(), Table()
        self.thread_names: dict[Thread, tuple[str, ...]] = {}
        self.group_ranks: dict[str, object] = {}
        self.read = 0
        self.is_trace = False
        self.has_modules: bool | None = None
        self._halves: list[Event] = []
        self._is_device = Flags(self.categories, lambda cat: (cat or "").lower() in KERNEL + COPY + RUNTIME)
        self._is_operator = Flags(self.categories, lambda cat: (cat or "").lower() in _OPERATOR)
        self._communicates = Flags(self.names, lambda name: (name or "").startswith(_COMMUNICATION))

    def begin(self, metadata: dict[str, Any]) -> None:
        """Tells what the head of the file says of its events, before the first of them."""
        if self.has_modules is None:
            self.has_modules = bool(metadata.get("with_stack") or metadata.get("with_modules"))

    def take(self, events: list[Event]) -> None:
        """Events in the order of the file."""
        self.read += len(events)
        advance(events=len(events))
        rows = [event for event in events if event.ph == "X"]
        self._take_rows(rows, [row.dur for row in rows])
        self.is_trace = self.is_trace or any(event.ph for event in events)
        if len(rows) < len(events):
            self.take_others(events)

    def scanned(self, events: int) -> None:
        """Counts events whose rows are added, and others given, apart."""
        self.read += events
        advance(events=events)
        self.is_trace = True

    def take_others(self, events: list[Event]) -> None:
        """What events say that are no complete ones."""
        others = [event for event in events if event.ph in _OTHER_PHASES]
        self._take_thread_names([e for e in others if e.ph == "M" and e.name == "thread_name"])
        self._take_allocations([e for e in others if e.ph == "i" and e.name == "[memory]"])
        self._halves += [event for event in others if event.ph in _HALF_PHASES]

    def take_pairs(self) -> dict[str, int]:
        """Makes rows of beginnings and ends, once all are there; what found no partner, by reason."""
        time_ns = nanoseconds([half.ts for half in self._halves])
        begins, ends, left = pairs(self._halves, time_ns)
        if begins:
            self._take_rows([self._halves[row] for row in begins], time_ns[ends] - time_ns[begins])
        return left

    def _take_rows(self, rows: list[Event], durations: list[msgspec.Raw] | Ints) -> None:
        part = Part(len(rows))
        part |= {
            "start_ns": nanoseconds([row.ts for row in rows]),
            "dur_ns": nanoseconds(durations) if isinstance(durations, list) else durations,
            "category": self.categories.codes([row.cat for row in rows]),
            "name": self.names.codes([row.name for row in rows]),
            "thread": self.threads.codes([(row.pid, row.tid) for row in rows]),
        }
        on_device = np.flatnonzero(self.is_device(part["category"]))
        self._fill_device(rows, part, on_device)
        if self.has_modules and len(at := np.flatnonzero(self.is_operator(part["category"]))):
            part["node"][at] = _ints([(rows[row].args or _NO_ARGS).node for row in at.tolist()])
        self.add_rows(rows, part, on_device)

    def is_device(self, category: Small) -> npt.NDArray[np.bool_]:
        """Which categories are those of device events and launches."""
        return self._is_device.of(category)

    def is_operator(self, category: Small) -> npt.NDArray[np.bool_]:
        """Which categories are those of the host's operators."""
        return self._is_operator.of(category)

    def add_rows(self, rows: Rows, part: Part, collectives: npt.NDArray[np.int64]) -> None:
        """Adds rows whose own columns are in ``part``; the numbers of those that may name a collective are given.

        ``rows`` are asked for what communicates alone.
        """
        for at in collectives.tolist():
            args = rows[at].args or _NO_ARGS
            if args.collective:
                self._fill_collective(args, part, at)
        self._fill_communication(rows, part)
        for name in PER_ROW:
            if name in part:
                self.parts[name].append(part[name])
            else:
                self.parts[name].skip(len(part["start_ns"]))

    def _fill_device(self, rows: list[Event], part: Part, on_device: npt.NDArray[np.int64]) -> None:
        args = [rows[at].args or _NO_ARGS for at in on_device.tolist()]
        placed = [n for n, one in enumerate(args) if one.device is not None or one.stream is not None]
        if args:
            part["correlation"][on_device] = _ints([one.correlation for one in args])
        if placed:
            part["device"][on_device[placed]] = _ints([args[n].device for n in placed])
            part["stream"][on_device[placed]] = _ints([args[n].stream for n in placed])

    def _fill_collective(self, args: Args, part: Part, at: int) -> None:
        part["collective"][at] = self.collectives[str(args.collective)]
        if args.group is not None:
            part["group"][at] = self.groups[str(args.group)]
            self.group_ranks.setdefault(str(args.group), args.ranks)
        if args.dtype:
            part["dtype"][at] = self.dtypes[str(args.dtype)]
        elements = max(_int(args.in_elements), _int(args.out_elements))
        width = itemsize(str(args.dtype))
        part["size_bytes"][at] = _int(elements * width) if elements >= 0 and width else -1
        part["sequence"][at] = _int(args.sequence)
        if args.source is not None or args.target is not None:
            part["peer"][at] = _int(args.source if args.target is None else args.target)

    def _fill_communication(self, rows: Rows, part: Part) -> None:
        for at in np.flatnonzero(self._communicates.of(part["name"])).tolist():
            args = rows[at].args or _NO_ARGS
            moved = message(bytes(args.dims), bytes(args.types))
            part["elements"][at], part["size_bytes"][at] = _int(moved.elements), _int(moved.size_bytes)
            if rows[at].name in PASSING:
                part["peer"][at] = peer(bytes(args.values))
            if moved.dtype:
                part["dtype"][at] = self.dtypes[moved.dtype]

    def _take_thread_names(self, events: list[Event]) -> None:
        for event in events:
            if event.args is not None and event.args.label is not None:
                thread, label = (event.pid, event.tid), str(event.args.label)
                known = self.thread_names.get(thread, ())
                if label not in known and len(known) < _NAMES_PER_THREAD:
                    self.thread_names[thread] = (*known, label)

    def _take_allocations(self, events: list[Event]) -> None:
        args = [event.args or _NO_ARGS for event in events]
        self.parts["memory_time_ns"].append(nanoseconds([event.ts for event in events]))
        for name, values in (
            ("memory_total_bytes", [_int(a.total) for a in args]),
            ("memory_device_type", [_int(a.device_type) for a in args]),
            ("memory_device", [_int(a.device_id) for a in args]),
        ):
            self.parts[name].append(np.array(values, dtype=np.int64))

    def columns(self, document: Document[Event], source: Source | None = None) -> Columns:
        dropped = Counter(document.dropped) + Counter(self.take_pairs())
        damage = packing(source, is_closed=document.is_closed) if source else Counter()
        dropped |= damage  # the larger of two counts
        is_complete = document.is_complete and CUT_SHORT not in damage
        whole: dict[str, Any] = {name: parts.whole() for name, parts in self.parts.items()}
        categories = _lower(whole["category"], tuple(str(c or "") for c in self.categories))
        if not is_complete:
            dropped.setdefault(CUT_SHORT, 1)
        return Columns(
            **whole,
            categories=categories,
            names=tuple(str(name or "") for name in self.names),
            threads=tuple(self.threads),
            collectives=tuple(self.collectives),
            groups=tuple(self.groups),
            dtypes=tuple(self.dtypes),
            thread_names=self.thread_names,
            metadata=document.metadata,
            read=self.read + sum(document.dropped[why] for why in (DAMAGED, NOT_AN_EVENT, ENDLESS)),
            dropped=dict(dropped),
            repaired=dict(document.repaired),
            is_complete=is_complete,
            group_ranks=self.group_ranks,
        )


def columns(path: Path) -> Columns:
    """Raises TraceError when the file cannot be read or is no Chrome trace."""
    source, gathering = Source(path), Gathering()
    document = _document(source, gathering)
    for batch in document.batches():
        gathering.begin(document.metadata)
        gathering.take(batch)
    if document.is_bare and gathering.read and not gathering.is_trace:
        raise TraceError(
            f"{path.name} is a JSON list of something else than trace events.",
            hint="Give the file that torch.profiler's export_chrome_trace wrote.",
        )
    return gathering.columns(document, source)


def _document(source: Source, gathering: Gathering) -> Document[Event]:
    if fast.is_worth(source.content_bytes, fast.WORTH_BYTES):
        from meshscope.readers.fast.kineto import FastDocument

        return FastDocument(source.blocks, gathering)
    return Document(source.blocks(), decode)


def _int(value: Any) -> int:
    """An int64 that is not negative, or −1."""
    return value if isinstance(value, int) and 0 <= value < 2**63 else -1


def _ints(values: list[Any]) -> Ints:
    """:func:`_int` of each."""
    if set(map(type, values)) == {int}:
        with suppress(OverflowError):
            return np.maximum(np.fromiter(values, dtype=np.int64, count=len(values)), -1)
    return np.array([_int(value) for value in values], dtype=np.int64)


def _lower(category: Small, categories: tuple[str, ...]) -> tuple[str, ...]:
    """The categories in lower case; numbers of those that become one are changed where they stand."""
    table = Table()
    codes = table.codes(name.lower() for name in categories)
    if len(table) < len(codes):
        for first in range(0, len(category), _CHUNK):
            category[first : first + _CHUNK] = codes[category[first : first + _CHUNK]]
    return tuple(table)
