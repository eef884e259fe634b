"""Rows gathered from an xplane file for one device, before they become a window."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind, Rule
from meshscope.readers.tables import Table
from meshscope.readers.told import by_name
from meshscope.spans import SpanTable, span_table

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

_START = re.compile(r"^%?((?:[a-z]+-)+)start([.\d]*)")
_DONE = re.compile(r"^%?((?:[a-z]+-)+)done([.\d]*)")


@dataclass(frozen=True, eq=False)
class Rows:
    """n events as columns of shape (n,), with numbers into the file's :class:`Tables`."""

    start_ns: Ints
    end_ns: Ints
    name: Small
    lane: Small
    kind: npt.NDArray[np.uint8]
    rule: Small
    collective: Small
    group: Small
    size_bytes: Ints
    dtype: Small
    path: Small

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: npt.NDArray[np.bool_] | Ints) -> Rows:
        return Rows(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


_NONE = np.empty(0, dtype=np.int64)
_NO_NUMBERS = _NONE.astype(np.int32)
NO_ROWS = Rows(
    start_ns=_NONE, end_ns=_NONE, name=_NO_NUMBERS, lane=_NO_NUMBERS, kind=_NONE.astype(np.uint8), rule=_NO_NUMBERS,
    collective=_NO_NUMBERS, group=_NO_NUMBERS, size_bytes=_NONE, dtype=_NO_NUMBERS, path=_NO_NUMBERS,
)  # fmt: skip


def unknown(count: int) -> dict[str, Any]:
    """What only programs tell of rows, until they have: group, size, element type and path."""
    return {
        "group": np.full(count, -1, dtype=np.int32),
        "size_bytes": np.full(count, -1, dtype=np.int64),
        "dtype": np.full(count, -1, dtype=np.int32),
        "path": np.full(count, -1, dtype=np.int32),
    }


def joined(parts: list[Rows]) -> Rows:
    """The rows of all parts, by start."""
    whole = Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in Rows.__dataclass_fields__))
    return whole.take(np.argsort(whole.start_ns, kind="stable"))


@dataclass
class Tables:
    """Names that rows refer to by number, shared by the windows of one file."""

    names: Table = field(default_factory=Table)
    lanes: Table = field(default_factory=Table)
    groups: Table = field(default_factory=Table)
    collectives: Table = field(default_factory=Table)
    rules: Table = field(default_factory=Table)
    dtypes: Table = field(default_factory=Table)
    paths: Table = field(default_factory=Table)

    def rows(self, name: Small, start_ns: Ints, end_ns: Ints, *, lane: str, rules: tuple[Rule, ...]) -> Rows:
        """Events of one line, told by their names."""
        told = by_name(name, tuple(self.names), np.ones(len(name), dtype=bool), rules)
        collectives = np.append(self.collectives.codes(told.collectives), np.int32(-1))  # −1, none, finds the last
        return Rows(
            start_ns=start_ns,
            end_ns=end_ns,
            name=name,
            lane=np.full(len(name), self.lanes[lane], dtype=np.int32),
            kind=told.kind,
            rule=self.rules.codes(told.rules)[told.rule],
            collective=collectives[told.collective],
            **unknown(len(name)),
        )

    def spans(self, rows: Rows, *, rank: int, device: int, step: Small) -> SpanTable:
        return span_table(
            start_ns=rows.start_ns,
            end_ns=rows.end_ns,
            rank=rank,
            device=device,
            lane=rows.lane,
            name=rows.name,
            kind=rows.kind,
            step=step,
            group=rows.group,
            collective=rows.collective,
            rule=rows.rule,
            size_bytes=rows.size_bytes,
            dtype=rows.dtype,
            path=rows.path,
            names=tuple(self.names),
            lanes=tuple(self.lanes),
            groups=tuple(self.groups),
            collectives=tuple(self.collectives),
            rules=tuple(self.rules),
            dtypes=tuple(self.dtypes),
            paths=tuple(self.paths),
        )


def with_async_pairs(rows: Rows, names: tuple[str, ...]) -> Rows:
    """Each asynchronous collective as one interval, from its start operation to its done.

    A done names its start as an operand where the trace carries the instruction's text; else both carry one number.
    Operations repeat from step to step, so the next done after a start is its own. Starts and dones that find no
    partner stay what they are.
    """
    comm = np.flatnonzero(rows.kind == Kind.COLLECTIVE)
    open_starts: dict[str, list[int]] = {}
    end_ns, kind = rows.end_ns.copy(), rows.kind.copy()
    for row in comm[np.argsort(rows.start_ns[comm], kind="stable")].tolist():
        name = names[rows.name[row]]
        if (start := _START.match(name)) is not None:
            open_starts.setdefault(f"{start[1]}start{start[2]}", []).append(row)
        elif (done := _DONE.match(name)) is not None:
            waiting = open_starts.get(_started_by(name, done), [])
            if waiting:
                end_ns[waiting.pop(0)] = rows.end_ns[row]
                kind[row] = Kind.OTHER
    return Rows(**{**vars(rows), "end_ns": end_ns, "kind": kind})


def _started_by(name: str, done: re.Match[str]) -> str:
    operand = re.search(r"%(" + re.escape(done[1]) + r"start[.\d]*)", name)
    return operand[1] if operand else f"{done[1]}start{done[2]}"
