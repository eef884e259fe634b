"""Rows gathered from an xplane file for one device, before they become a window."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.kinds import Kind, Rule
from meshscope.readers.growing import Growing, taken
from meshscope.readers.tables import Table
from meshscope.readers.told import by_name
from meshscope.spans import SpanTable, span_table

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

_WAITING = 1 << 14
_TIMES = frozenset({"start_ns", "end_ns"})
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
    how: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: npt.NDArray[np.bool_] | Ints) -> Rows:
        return Rows(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


_NONE = np.empty(0, dtype=np.int64)
_NO_NUMBERS = _NONE.astype(np.int32)
NO_ROWS = Rows(
    start_ns=_NONE, end_ns=_NONE, name=_NO_NUMBERS, lane=_NO_NUMBERS, kind=_NONE.astype(np.uint8), rule=_NO_NUMBERS,
    collective=_NO_NUMBERS, group=_NO_NUMBERS, size_bytes=_NONE, dtype=_NO_NUMBERS, path=_NO_NUMBERS,
    how=_NONE.astype(np.int8),
)  # fmt: skip


def unknown(count: int) -> dict[str, Any]:
    """What only programs tell of rows, until they have: group, size, element type, path and how they are run."""
    return {
        "group": np.full(count, -1, dtype=np.int32),
        "size_bytes": np.full(count, -1, dtype=np.int64),
        "dtype": np.full(count, -1, dtype=np.int32),
        "path": np.full(count, -1, dtype=np.int32),
        "how": np.full(count, -1, dtype=np.int8),
    }


def concatenated(parts: list[Rows]) -> Rows:
    """The rows of all parts, as they come."""
    return Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in Rows.__dataclass_fields__))


class Gathering:
    """Rows that come in parts, as columns that grow; a few stay parts."""

    def __init__(self) -> None:
        self._columns: dict[str, Growing] = {}
        self._parts: list[Rows] = []
        self._waiting = 0

    def add(self, part: Rows) -> None:
        self._parts.append(part)
        self._waiting += len(part)
        if self._waiting >= _WAITING:
            self._grow()

    def by_start(self) -> Rows:
        """All rows, by start; of those that start at once, as they came. Nothing is left here."""
        self._grow()
        columns = {name: self._columns.pop(name).whole() for name in list(self._columns)}
        start_ns = columns["start_ns"]
        if not (start_ns[1:] >= start_ns[:-1]).all():
            order = np.argsort(start_ns, kind="stable")
            del start_ns
            for name in list(columns):
                columns[name] = taken(columns[name], order)  # one after another, so that two of one are all there is
        return Rows(**columns)

    def _grow(self) -> None:
        """One after another: what a part's columns took is free for the next."""
        parts, self._parts, self._waiting = self._parts or [NO_ROWS], [], 0
        for name in Rows.__dataclass_fields__:
            column = np.concatenate([getattr(part, name) for part in parts])
            growing = self._columns.setdefault(name, Growing(column.dtype))
            if not len(column):  # nothing is left of the last parts: not a column of one value
                continue
            if name not in _TIMES and (column == -1).all():  # unknown, which takes no room where all is that
                growing.skip(len(column))
            else:
                growing.append(column)


_UNTOLD = -2
_NOTHING_TOLD = np.empty((3, 0), dtype=np.int32)


def joined(parts: Iterable[Rows]) -> Rows:
    """The rows of all parts, by start."""
    gathering = Gathering()
    for part in parts:
        gathering.add(part)
    return gathering.by_start()


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
    _kinds: dict[tuple[Rule, ...], npt.NDArray[np.int32]] = field(default_factory=dict)

    def rows(self, name: Small, start_ns: Ints, end_ns: Ints, *, lane: str, rules: tuple[Rule, ...]) -> Rows:
        """Some events of one line, told by their names."""
        kind, rule, collective = self._told(name, rules)
        return Rows(
            start_ns=start_ns,
            end_ns=end_ns,
            name=name,
            lane=np.full(len(name), self.lanes[lane], dtype=np.int32),
            kind=kind[name].astype(np.uint8),
            rule=rule[name],
            collective=collective[name],
            **unknown(len(name)),
        )

    def _told(self, name: Small, rules: tuple[Rule, ...]) -> tuple[Small, Small, Small]:
        """Kind, rule and collective of every name by number; a name is looked at when it is met first."""
        count = len(self.names)
        found = self._kinds.get(rules, _NOTHING_TOLD)
        if count > found.shape[1]:
            grown = np.full((3, 2 * count), _UNTOLD, dtype=np.int32)
            grown[:, : found.shape[1]] = found
            self._kinds[rules] = found = grown
        new = np.unique(name[found[0][name] == _UNTOLD])
        if len(new):
            told = by_name(new, tuple(self.names), np.ones(len(new), dtype=bool), rules)
            collectives = np.append(self.collectives.codes(told.collectives), np.int32(-1))  # −1, none, finds the last
            found[0, new] = told.kind
            found[1, new] = self.rules.codes(told.rules)[told.rule]
            found[2, new] = collectives[told.collective]
        kind, rule, collective = found
        return kind, rule, collective

    def said(self) -> dict[str, tuple[str, ...]]:
        """The tables as they are now, by their name in a :class:`SpanTable`."""
        return {
            "names": tuple(self.names),
            "lanes": tuple(self.lanes),
            "groups": tuple(self.groups),
            "collectives": tuple(self.collectives),
            "rules": tuple(self.rules),
            "dtypes": tuple(self.dtypes),
            "paths": tuple(self.paths),
        }


def spans_of(rows: Rows, tables: dict[str, tuple[str, ...]], *, device: int, step: Small) -> SpanTable:
    """Rows as the table that every trace becomes; ``tables`` are those that :meth:`Tables.said` gave."""
    # One value that stands for all takes no room.
    columns: dict[str, Any] = dict.fromkeys(("link", "sequence"), -1)
    columns |= {name: getattr(rows, name) for name in Rows.__dataclass_fields__}
    return span_table(rank=device, device=device, step=step, **columns, **tables)


def with_async_pairs(rows: Rows, names: tuple[str, ...]) -> Rows:
    """Each asynchronous collective as one interval, from its start operation to its done; these rows are changed.

    A done names its start as an operand where the trace carries the instruction's text; else both carry one number.
    Operations repeat from step to step, so the next done after a start is its own. Starts and dones that find no
    partner stay what they are.
    """
    is_half = np.array([_START.match(name) is not None or _DONE.match(name) is not None for name in names], dtype=bool)
    if not is_half.any():
        return rows
    comm = np.flatnonzero((rows.kind == Kind.COLLECTIVE) & is_half[rows.name])
    open_starts: dict[str, list[int]] = {}
    end_ns, kind = rows.end_ns, rows.kind
    done_ns = end_ns[comm]
    order = np.argsort(rows.start_ns[comm], kind="stable")
    for row, until_ns in zip(comm[order].tolist(), done_ns[order].tolist(), strict=True):
        name = names[rows.name[row]]
        if (start := _START.match(name)) is not None:
            open_starts.setdefault(f"{start[1]}start{start[2]}", []).append(row)
        elif (done := _DONE.match(name)) is not None:
            waiting = open_starts.get(_started_by(name, done), [])
            if waiting:
                end_ns[waiting.pop(0)] = until_ns
                kind[row] = Kind.OTHER
    return rows


def _started_by(name: str, done: re.Match[str]) -> str:
    operand = re.search(r"%(" + re.escape(done[1]) + r"start[.\d]*)", name)
    return operand[1] if operand else f"{done[1]}start{done[2]}"
