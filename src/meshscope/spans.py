"""The one table that every native trace becomes: parallel columns, one row per span."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import IntFlag
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.intervals import Intervals, union
from meshscope.kinds import Kind as Kind  # noqa: PLC0414  # handed on: a span and its kind go together
from meshscope.kinds import is_any

Column = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]


class How(IntFlag):
    """How a compiled program runs an operation, as far as it tells.

    A collective runs beside other work or in its place, and carries several arrays (a compiler combined them) or one.
    What is in ``COMMANDS`` was put into a command buffer (a CUDA or HIP graph) and is launched with all of it.
    """

    ASYNCHRONOUS = 1
    SYNCHRONOUS = 2
    COMBINED = 4
    SINGLE = 8
    COMMANDS = 16


@dataclass(frozen=True, eq=False)
class SpanTable:
    """n spans as columns of shape (n,); times are int64 ns since the recording's ``t0_unix_ns``, half-open.

    ``lane`` indexes ``lanes`` (one serial queue: a CUDA stream, an XLA line, a thread), ``name`` indexes
    ``names``, ``group`` indexes ``groups`` and ``dtype`` indexes ``dtypes``; −1 means unknown there and in
    ``step``, ``link``, ``size_bytes`` and ``sequence``. ``kind`` holds :class:`Kind`. ``link`` is the row of the
    launch, and of the forward operator where the span is the evaluation of a backward function.
    ``collective`` indexes ``collectives`` (canonical names such as ``all_reduce``; −1 for what is none) and ``rule``
    indexes ``rules``: the pattern by which ``kind`` was told, or −1 where the trace's own category told it; a host
    span's rule is ``kinds.ANNOTATION`` or ``kinds.FRAME`` where it is one. ``path`` indexes ``paths``: where in the
    program an XLA operation comes from, its scopes and transformations (``jit(step)/jvp(Net)/Dense_0/dot_general``).
    ``how`` holds :class:`How`, −1 where nothing is told.
    """

    start_ns: Column
    end_ns: Column
    rank: Small
    device: Small
    lane: Small
    name: Small
    kind: npt.NDArray[np.uint8]
    step: Small
    link: Column
    size_bytes: Column
    dtype: Small
    group: Small
    sequence: Column
    collective: Small
    rule: Small
    path: Small
    how: npt.NDArray[np.int8]
    names: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.start_ns)

    def where(self, keep: npt.NDArray[np.bool_] | npt.NDArray[np.integer[Any]]) -> SpanTable:
        """The rows that a mask keeps, or the rows of some numbers in their order.

        The name tables are shared, ``link`` is dropped (rows move).
        """
        columns: dict[str, Any] = {name: getattr(self, name)[keep] for name in COLUMNS}
        columns.update((name, getattr(self, name)) for name in NAME_TABLES)
        columns["link"] = np.full(len(columns["start_ns"]), -1, dtype=np.int64)
        return SpanTable(**columns)

    def shifted(self, by_ns: int) -> SpanTable:
        """The same spans, ``by_ns`` later."""
        return replace(self, start_ns=self.start_ns + by_ns, end_ns=self.end_ns + by_ns)

    def of_kind(self, *kinds: Kind) -> SpanTable:
        return self.where(is_any(self.kind, kinds))

    def busy(self, *kinds: Kind) -> Intervals:
        """The time covered by at least one span of ``kinds`` (of any kind when none is given).

        Kept where there are few: of a thousand ranks it is asked by ten questions, and their unions are small.
        """
        found = self._busy.get(kinds)
        if found is None:
            keep = is_any(self.kind, kinds) if kinds else slice(None)
            found = union(self.start_ns[keep], self.end_ns[keep])
            if len(self) <= _FEW:
                self._busy[kinds] = found
        return found

    @cached_property
    def _busy(self) -> dict[tuple[Kind, ...], Intervals]:
        return {}

    def name_of(self, row: int) -> str:
        return self.names[int(self.name[row])]

    def rule_of(self, row: int) -> str:
        """The rule by which the row's kind was told."""
        return self.rules[int(self.rule[row])] if self.rule[row] >= 0 else "the trace's own category"


_FEW = 100_000

NAME_TABLES = ("names", "lanes", "dtypes", "groups", "collectives", "rules", "paths")
COLUMNS = tuple(f.name for f in fields(SpanTable) if f.name not in NAME_TABLES)

_SMALL = ("rank", "device", "lane", "name", "step", "dtype", "group", "collective", "rule", "path")
_DTYPES: dict[str, type[np.generic]] = dict.fromkeys(_SMALL, np.int32) | {"kind": np.uint8, "how": np.int8}
_DEFAULTS = {"rank": 0, "device": 0, "lane": 0, "kind": 0}
_RARE = ("path", "how")
"""Most formats have none of these, and a column of theirs takes no memory."""


def span_table(
    *,
    names: tuple[str, ...] = (),
    lanes: tuple[str, ...] = (),
    dtypes: tuple[str, ...] = (),
    groups: tuple[str, ...] = (),
    collectives: tuple[str, ...] = (),
    rules: tuple[str, ...] = (),
    paths: tuple[str, ...] = (),
    **columns: object,
) -> SpanTable:
    """A table from the columns that are known; the others are filled with 0 (rank, device, lane, kind) or −1."""
    count = len(np.atleast_1d(np.asarray(columns["start_ns"])))
    full: dict[str, Any] = {}
    for name in COLUMNS:
        dtype = _DTYPES.get(name, np.int64)
        if name in columns:
            full[name] = np.broadcast_to(np.asarray(columns[name], dtype=dtype), (count,))
        elif name in _RARE:
            full[name] = np.broadcast_to(dtype(-1), (count,))
        else:
            full[name] = np.full(count, _DEFAULTS.get(name, -1), dtype=dtype)
    full |= {"names": names, "lanes": lanes, "dtypes": dtypes, "groups": groups}
    return SpanTable(**full, collectives=collectives, rules=rules, paths=paths)


@dataclass(frozen=True)
class Counts:
    """What a reader met: events read, device events kept, and what was dropped or repaired, by reason."""

    read: int = 0
    device: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ProcessGroup:
    """A group of ranks as a trace declares it: ``size`` and global ``ranks``, 0 and empty where it does not say."""

    name: str
    size: int
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Window:
    """One stretch of one rank that a profiler covered: its spans and what they are worth.

    ``steps`` are the step numbers wholly inside; ``step_ns`` has shape (len(steps), 2): start and end of each.
    ``device_kind`` says by which rule the spans were classified: ``"gpu"``, ``"tpu"`` or ``"cpu"``; ``"none"``
    where the trace holds no device work, with the reason in ``cannot_say``.
    Cost and freshness come from the journal, not from the trace. ``world`` is how many ranks the trace says there
    are, 0 where it does not; ``has_unix_time`` is false for a trace that does not say when it was made. ``host`` names
    the machine whose clock the times are of, "" where untold; ``process_groups`` are those that the trace declares.
    ``simulated_by`` names the program that drew the trace where nothing ran, "" for what a profiler saw.
    """

    rank: int
    device: int
    rank_from: str
    framework: str
    device_kind: str
    start_ns: int
    end_ns: int
    steps: tuple[int, ...]
    step_ns: Column
    is_complete: bool
    spans: SpanTable
    counts: Counts
    source: str
    cannot_say: tuple[tuple[str, str], ...] = ()
    allocations: Allocations | None = None
    world: int = 0
    has_unix_time: bool = True
    host: str = ""
    process_groups: tuple[ProcessGroup, ...] = ()
    simulated_by: str = ""

    def shifted(self, by_ns: int) -> Window:
        """The same window, ``by_ns`` later."""
        return replace(
            self,
            start_ns=self.start_ns + by_ns,
            end_ns=self.end_ns + by_ns,
            step_ns=self.step_ns + by_ns,
            spans=self.spans.shifted(by_ns),
            allocations=self.allocations and replace(self.allocations, time_ns=self.allocations.time_ns + by_ns),
        )


@dataclass(frozen=True, eq=False)
class Allocations:
    """The allocator's total over time as a trace recorded it: ``total_bytes[i]`` from ``time_ns[i]`` on.

    Totals of host memory are relative to the profiler's start (what was allocated before counts as zero); those of a
    GPU are the caching allocator's own, whatever was allocated when. Shape (n,).
    """

    time_ns: Column
    total_bytes: Column
