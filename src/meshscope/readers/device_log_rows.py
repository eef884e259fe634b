"""The rows of one heading (or of none) as readings: when, of which device, and what each column is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from meshscope.readers import device_log_fields as fields
from meshscope.readers.decimals import UNKNOWN_NS
from meshscope.readers.device_log_bare import told
from meshscope.readers.device_log_fields import Column
from meshscope.readers.device_log_times import Times, is_clock, is_date, is_time, times
from meshscope.records import Doubt

Ints = npt.NDArray[np.int64]

_NO_TIME = "reading without a time"
_TWICE = "reading written twice"
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, eq=False)
class Readings:
    """n rows: ``time_ns`` (n,), ``devices`` (n names) and columns. ``models`` are the devices' products by name."""

    time_ns: Ints
    is_unix: bool
    has_times: bool
    devices: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: int
    models: dict[str, str] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()
    dropped: Counter[str] = field(default_factory=Counter)


def readings(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Readings:
    """Rows have as many cells as the heading, or as one another where it is empty."""
    columns = [list(cells) for cells in zip(*rows, strict=True)]
    names = [fields.bare(one) for one in heading] or _roles(columns)
    clock, at = _clock(names, columns)
    again = _again(rows, clock.time_ns)
    known = (clock.time_ns != UNKNOWN_NS) & ~again
    kept = [[cell for cell, is_kept in zip(cells, known.tolist(), strict=True) if is_kept] for cells in columns]
    time_ns = clock.time_ns[known]
    devices, models, doubts = _devices(names, kept, time_ns)
    if clock.note:
        doubts.append(("time", clock.note))
    if heading:
        found = [fields.named(one, cells) for one, cells in zip(heading, kept, strict=True)]
    else:
        found, unsaid = told(names, kept)
        doubts += unsaid
    by_field: dict[str, Column] = {}
    for column in found:
        if column is not None:
            by_field.setdefault(column.field, column)  # one that is asked for twice says the same twice
    return Readings(
        time_ns=time_ns,
        is_unix=clock.is_unix,
        has_times=bool(at),
        devices=devices,
        columns=tuple(by_field.values()),
        rows=len(rows),
        models=models,
        doubts=tuple(doubts),
        dropped=Counter({_NO_TIME: int((~known & ~again).sum()), _TWICE: int(again.sum())}),
    )


def _again(rows: Sequence[Sequence[str]], time_ns: Ints) -> npt.NDArray[np.bool_]:
    """Rows that were there before the clock went back: a log has its copy behind it, or was appended twice."""
    again = np.zeros(len(rows), dtype=bool)
    told = np.flatnonzero(time_ns != UNKNOWN_NS)
    turns = told[1:][time_ns[told[1:]] < time_ns[told[:-1]]]
    before: Counter[tuple[str, ...]] = Counter()
    for first, last in pairwise((0, *turns.tolist(), len(rows)) if len(turns) else ()):
        left = before.copy()
        for number, row in enumerate(map(tuple, rows[first:last]), first):
            again[number] = left[row] > 0
            left[row] -= 1
            before[row] += not again[number]
    return again


def _roles(columns: list[list[str]]) -> list[str]:
    """Of a log without a heading: what columns of text are; "" for those of numbers."""
    return [_role(cells) for cells in columns]


def _role(cells: list[str]) -> str:
    first = cells[0]
    if is_time(first):
        return "timestamp"
    if is_date(first):
        return "date"
    if is_clock(first):
        return "time"
    if first.startswith("GPU-"):
        return "uuid"
    if any(map(fields.is_number, cells)) or first.startswith("["):
        return ""
    is_bus = first.count(":") == 2 and first[-2:-1] == "."
    is_state = first[:1] == "P" and first[1:].isdecimal()
    return "pci.bus_id" if is_bus else "pstate" if is_state else "name"


def _clock(names: list[str], columns: list[list[str]]) -> tuple[Times, list[int]]:
    """The times, and the columns that told them; without any, one second for each round of the devices in order."""
    at = [names.index(name) for name in ("timestamp",) if name in names]
    at = at or [names.index(name) for name in ("date", "time") if name in names]
    if not at:
        return Times(_rounds(_identifying(names, columns), len(columns[0])) * _SECOND_NS, is_unix=False), at
    cells = [" ".join(parts) for parts in zip(*(columns[place] for place in at), strict=True)]
    return times(cells), at


def _rounds(device: list[str] | None, count: int) -> Ints:
    """The round of each row: a device that comes again begins another; where rows name none, each is one."""
    if device is None:
        return np.arange(count, dtype=np.int64)
    rounds, here = [0], {device[0]}
    for one in device[1:]:
        rounds.append(rounds[-1] + (one in here))
        here = {one} if one in here else here | {one}
    return np.array(rounds, dtype=np.int64)


def _identifying(names: list[str], columns: list[list[str]]) -> list[str] | None:
    """The cells that tell a row's device, where a column does."""
    return next((columns[names.index(name)] for name in (*fields.INDICES, *fields.IDENTITIES) if name in names), None)


def _devices(
    names: list[str], columns: list[list[str]], time_ns: Ints
) -> tuple[tuple[str, ...], dict[str, str], list[Doubt]]:
    """The device of each row: by its index, else by what identifies it, else by its place within one reading."""
    doubts: list[Doubt] = []
    index = next((columns[names.index(name)] for name in fields.INDICES if name in names), None)
    identity = next((columns[names.index(name)] for name in fields.IDENTITIES if name in names), None)
    if index is not None:
        devices = [
            f"gpu {cell.removeprefix('card')}" if cell.removeprefix("card").isdecimal() else cell for cell in index
        ]
    elif identity is not None:
        devices = [f"gpu {cell}" for cell in identity]
    else:
        place, count = _places(time_ns)
        devices = [f"gpu {number}" for number in place.tolist()] if count > 1 else ["gpu"] * len(time_ns)
        if count > 1:
            doubts.append(("device", f"rows do not name their device: {count} to a reading are taken in order"))
    model = next((columns[names.index(name)] for name in fields.MODELS if name in names), None)
    return tuple(devices), dict(zip(devices, model, strict=True)) if model else {}, doubts


def _places(time_ns: Ints) -> tuple[Ints, int]:
    """Each row's place within its reading, and how many rows make a reading: rows of one are written at once."""
    gaps = np.diff(time_ns)
    begins = np.append(np.True_, gaps > gaps.max() / 4) if len(gaps) and gaps.max() > 0 else np.ones(1, dtype=bool)
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.append(starts, len(time_ns)))
    if len(starts) < 2 or sizes[0] < 2 or (sizes[:-1] != sizes[0]).any() or sizes[-1] > sizes[0]:
        return np.zeros(len(time_ns), dtype=np.int64), 1
    return np.arange(len(time_ns)) - np.repeat(starts, sizes), int(sizes[0])
