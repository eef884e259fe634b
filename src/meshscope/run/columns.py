"""Steps and sensor readings of the journal as columns that grow and are cut at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.recording.entries import Sampled, StepDone
from meshscope.samples import STEP_COLUMNS, SampleTable, StepTable

Records = npt.NDArray[Any]
Numbers = npt.NDArray[np.int32]

_SMALL = ("rank", "step")
_FLOATS = ("loss",)
_STEP = np.dtype(
    [("t_ns", np.int64)]
    + [(name, np.int32 if name in _SMALL else np.float64 if name in _FLOATS else np.int64)
       for name in STEP_COLUMNS if name != "is_profiled"]
    + [("is_profiled", np.bool_)]
)  # fmt: skip
_SAMPLE = np.dtype([("t_ns", np.int64), ("device", np.int32), ("field", np.int32), ("value", np.float64)])


class Grown:
    """Records in chunks, joined when they are asked for. ``order`` are the fields they are sorted by, most first."""

    def __init__(self, kind: np.dtype[Any], order: Sequence[str]) -> None:
        self._joined: Records = np.empty(0, dtype=kind)
        self._fresh: list[Records] = []
        self._order = tuple(reversed(order))

    def add(self, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            self._fresh.append(np.array(rows, dtype=self._joined.dtype))

    def until(self, now_ns: int) -> Records:
        """The records written at or before a time, sorted."""
        if self._fresh:
            joined = np.concatenate((self._joined, *self._fresh))
            self._joined = joined[np.lexsort([joined[name] for name in self._order])]
            self._fresh = []
        seen = self._joined["t_ns"] <= now_ns
        return self._joined if seen.all() else self._joined[seen]


class StepColumns:
    """Every ``StepDone``, sorted by (rank, step)."""

    def __init__(self) -> None:
        self._grown = Grown(_STEP, ("rank", "step", "start_ns", "end_ns", "t_ns"))

    def add(self, entries: list[StepDone]) -> None:
        self._grown.add([_step(entry) for entry in entries])

    def table(self, now_ns: int) -> StepTable:
        records = self._grown.until(now_ns)
        return StepTable(**{name: np.ascontiguousarray(records[name]) for name in STEP_COLUMNS})


def _step(entry: StepDone) -> tuple[Any, ...]:
    values = (getattr(entry, name) for name in STEP_COLUMNS)
    return (entry.t_ns, *(math.nan if value is None else value for value in values))


class SampleColumns:
    """Every reading, sorted by (time, device, field); name tables are in alphabetical order."""

    def __init__(self) -> None:
        self._grown = Grown(_SAMPLE, ("t_ns",))
        self._devices: dict[str, int] = {}
        self._fields: dict[str, int] = {}

    def add(self, entries: list[Sampled]) -> None:
        self._grown.add(
            [
                (entry.t_ns, self._number(self._devices, entry.device), self._number(self._fields, name), value)
                for entry in entries
                for name, value in entry.values.items()
            ]
        )

    @staticmethod
    def _number(table: dict[str, int], name: str) -> int:
        return table.setdefault(name, len(table))

    def table(self, now_ns: int) -> SampleTable:
        records = self._grown.until(now_ns)
        device, devices = _alphabetical(records["device"], self._devices)
        field, fields = _alphabetical(records["field"], self._fields)
        # Numbers were given in order of arrival; by name the order depends on the readings alone.
        order = np.lexsort((records["value"], field, device, records["t_ns"]))
        return SampleTable(
            time_ns=records["t_ns"][order],
            device=device[order],
            field=field[order],
            value=records["value"][order],
            devices=devices,
            fields=fields,
        )


def _alphabetical(
    numbers: npt.NDArray[np.int32], table: dict[str, int]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """The numbers of the names that occur, in alphabetical order of the names."""
    used = set(np.unique(numbers).tolist())
    names = tuple(sorted(name for name, number in table.items() if number in used))
    place = np.zeros(len(table) + 1, dtype=np.int32)
    place[[table[name] for name in names]] = np.arange(len(names), dtype=np.int32)
    return place[numbers], names
