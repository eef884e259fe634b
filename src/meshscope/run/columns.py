"""Steps and sensor readings of the journal as columns that grow and are cut at a time.

A live screen asks several times a second: what is new is sorted and put in its place, the rest stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from meshscope.recording.entries import Sampled, StepDone
from meshscope.samples import STEP_COLUMNS, LostLoss, SampleTable, StepTable

Columns = dict[str, npt.NDArray[Any]]
Numbers = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]

_SMALL = ("rank", "step")
_LOST = ("", "NaN", "inf", "-inf")
"""What a loss was, by the number in its column."""
_STEP = np.dtype(
    [("t_ns", np.int64)]
    + [(name, np.int32 if name in _SMALL else np.float64 if name == "loss" else np.int64)
       for name in STEP_COLUMNS if name != "is_profiled"]
    + [("is_profiled", np.bool_), ("lost", np.int8)]
)  # fmt: skip
_SAMPLE = np.dtype([("t_ns", np.int64), ("device", np.int32), ("field", np.int32), ("value", np.float64)])


class StepColumns:
    """Every ``StepDone``, sorted by (rank, step)."""

    def __init__(self) -> None:
        self._sorted = _columns([], _STEP)
        self._fresh: list[StepDone] = []
        self._newest_ns = -1

    def add(self, entries: Iterable[StepDone]) -> None:
        self._fresh += entries

    def table(self, now_ns: int) -> StepTable:
        """The steps written at or before a time."""
        self._take_fresh()
        seen = self._sorted if now_ns >= self._newest_ns else _until(self._sorted, now_ns)
        return StepTable(**{name: seen[name] for name in STEP_COLUMNS})

    def lost(self, now_ns: int) -> tuple[LostLoss, ...]:
        """The ranks whose newest loss that was written at or before a time is not finite, and since when."""
        self._take_fresh()
        if not self._sorted["lost"].any():
            return ()
        seen = _until(self._sorted, now_ns)
        tells = (seen["lost"] > 0) | ~np.isnan(seen["loss"])
        rank, step, lost = (seen[name][tells] for name in ("rank", "step", "lost"))
        found = []
        for number in np.unique(rank[lost > 0]).tolist():
            rows = np.flatnonzero(rank == number)
            finite = rows[lost[rows] == 0]
            first = rows[0] if not len(finite) else finite[-1] + 1
            if first <= rows[-1]:
                found.append(LostLoss(number, int(step[first]), _LOST[int(lost[first])]))
        return tuple(found)

    def _take_fresh(self) -> None:
        if self._fresh:
            fresh = _columns(list(map(_values, self._fresh)), _STEP)
            self._newest_ns = max(self._newest_ns, int(fresh["t_ns"].max()))
            self._sorted = _with_steps(self._sorted, _by_rank_and_step(fresh))
            self._fresh = []


_told = attrgetter(*(_STEP.names or ())[:-1])


def _values(entry: StepDone) -> tuple[Any, ...]:
    """A row. A loss that is none, or not finite, is NaN in its column: no mean and no axis can take it."""
    if entry.loss is None or math.isfinite(entry.loss):
        return (*_told(entry), 0)
    lost = _LOST.index("NaN" if math.isnan(entry.loss) else "inf" if entry.loss > 0 else "-inf")
    return (*_told(msgspec.structs.replace(entry, loss=None)), lost)


def _with_steps(known: Columns, fresh: Columns) -> Columns:
    """Both as one. Ranks go on from where they were, nearly always, and then nothing is sorted anew."""
    rank = fresh["rank"]
    begun = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))
    ends = known["rank"].searchsorted(rank[begun], side="right")
    has_all = bool(len(known["rank"])) and bool((known["rank"][ends - 1] == rank[begun]).all())
    if not has_all or (fresh["step"][begun] <= known["step"][ends - 1]).any():
        return _by_rank_and_step(_joined(known, fresh))
    # Each row moves by as many as are put before it.
    before = np.zeros(len(known["rank"]) + 1, dtype=np.int64)
    before[ends] = np.diff(np.append(begun, len(rank)))
    kept_at = np.arange(len(known["rank"])) + before.cumsum()[:-1]
    fresh_at = np.arange(len(rank)) + ends.repeat(np.diff(np.append(begun, len(rank))))
    return {name: _placed(column, kept_at, fresh[name], fresh_at) for name, column in known.items()}


def _placed(kept: Any, kept_at: Ints, fresh: Any, fresh_at: Ints) -> npt.NDArray[Any]:
    found = np.empty(len(kept) + len(fresh), dtype=kept.dtype)
    found[kept_at] = kept
    found[fresh_at] = fresh
    return found


def _by_rank_and_step(columns: Columns) -> Columns:
    """A stable sort of one key is fast where most is in order; equal keys (a step told twice) need all columns."""
    key = columns["rank"].astype(np.int64) << 32 | columns["step"]
    order = np.argsort(key, kind="stable")
    if (np.diff(key[order]) == 0).any():
        order = np.lexsort([columns[name] for name in ("t_ns", *reversed(STEP_COLUMNS))])
    return _taken(columns, order)


class SampleColumns:
    """Every reading, sorted by (time, device, field); name tables are in alphabetical order."""

    def __init__(self) -> None:
        self._sorted = _columns([], _SAMPLE)
        self._fresh: list[Sampled] = []
        self._devices: dict[str, int] = {}
        self._fields: dict[str, int] = {}

    def add(self, entries: Iterable[Sampled]) -> None:
        self._fresh += entries

    def table(self, now_ns: int) -> SampleTable:
        """The readings written at or before a time."""
        self._take_fresh()
        seen = _until(self._sorted, now_ns)
        device, devices = _alphabetical(seen["device"], self._devices)
        field, fields = _alphabetical(seen["field"], self._fields)
        return SampleTable(seen["t_ns"], device, field, seen["value"], devices, fields)

    def _take_fresh(self) -> None:
        if not self._fresh:
            return
        rows = [
            (entry.t_ns, _number(self._devices, entry.device), _number(self._fields, name), value)
            for entry in self._fresh
            for name, value in entry.values.items()
            if math.isfinite(value)  # of a reading that is no number nothing is known
        ]
        self._fresh = []
        fresh = _columns(rows, _SAMPLE)
        # Readings come in order of time but for those of writers that overlap: only the end is sorted anew.
        first_ns = fresh["t_ns"].min() if rows else 0
        cut = int(np.searchsorted(self._sorted["t_ns"], first_ns))
        settled = {name: column[:cut] for name, column in self._sorted.items()}
        rest = {name: column[cut:] for name, column in self._sorted.items()}
        self._sorted = _joined(settled, self._in_order(_joined(rest, fresh)))

    def _in_order(self, columns: Columns) -> Columns:
        device, _ = _alphabetical(columns["device"], self._devices)
        field, _ = _alphabetical(columns["field"], self._fields)
        return _taken(columns, np.lexsort((columns["value"], field, device, columns["t_ns"])))


def _number(table: dict[str, int], name: str) -> int:
    return table.setdefault(name, len(table))


def _alphabetical(numbers: Numbers, table: dict[str, int]) -> tuple[Numbers, tuple[str, ...]]:
    """The numbers of the names that occur, in alphabetical order of the names."""
    used = np.flatnonzero(np.bincount(numbers, minlength=1)) if len(numbers) else np.empty(0, dtype=np.int64)
    is_used = set(used.tolist())
    names = tuple(sorted(name for name, number in table.items() if number in is_used))
    place = np.zeros(len(table) + 1, dtype=np.int32)
    place[[table[name] for name in names]] = np.arange(len(names), dtype=np.int32)
    return place[numbers], names


def _columns(rows: list[tuple[Any, ...]], kind: np.dtype[Any]) -> Columns:
    records = np.array(rows, dtype=kind)
    return {name: np.ascontiguousarray(records[name]) for name in kind.names or ()}


def _joined(a: Columns, b: Columns) -> Columns:
    return {name: np.concatenate((a[name], b[name])) for name in a}


def _taken(columns: Columns, rows: npt.NDArray[Any]) -> Columns:
    return {name: column[rows] for name, column in columns.items()}


def _until(columns: Columns, now_ns: int) -> Columns:
    seen = columns["t_ns"] <= now_ns
    return columns if seen.all() else _taken(columns, seen)
