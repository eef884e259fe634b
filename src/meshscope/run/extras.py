"""Records beside traces: snapshots, timelines, flight recorders, device logs, joined to the runs that they are of.

A record joins the traces of its folder only where its rank and its time both say so; a log in the local time of an
unknown zone joins nothing. What cannot be told apart is kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meshscope.experiment import Experiment
from meshscope.recording.entries import SensorFailed
from meshscope.records import FlightRecord, MemoryRecord, Record, SensorRecord
from meshscope.run.ledger import fold
from meshscope.run.state import Run
from meshscope.samples import SampleTable
from meshscope.units import NS_PER_S

Refusal = tuple[str, str, str]

_DIGITS = re.compile(r"\d+")
_HOUR_NS = 3600 * NS_PER_S


@dataclass(frozen=True)
class Extras:
    """Records by file, and (path, why, hint) of files that a record reader knows and cannot read."""

    records: dict[Path, tuple[Record, ...]]
    refused: tuple[Refusal, ...] = ()


def with_records(runs: Iterable[Run], extras: Extras) -> tuple[Run, ...]:
    """The runs, with the records that are of them; then a Run for each group of the others."""
    known = list(runs)
    alone: list[tuple[Path, tuple[Record, ...]]] = []
    for path, records in extras.records.items():
        home = next((at for at, run in enumerate(known) if _is_of(records, path, run)), None)
        if home is None:
            alone.append((path, records))
        else:
            known[home] = _joined(known[home], path, records)
    return (*known, *(_run(group) for group in _groups(alone)))


def _is_of(records: tuple[Record, ...], path: Path, run: Run) -> bool:
    windows = run.windows
    if not windows or not all(window.has_unix_time for window in windows):
        return False
    if path.parent not in {Path(window.source).parent for window in windows}:
        return False
    t0_ns = run.experiment.t0_unix_ns
    start_ns = t0_ns + min(window.start_ns for window in windows)
    end_ns = t0_ns + max(window.end_ns for window in windows)
    first = records[0]
    overlaps = first.has_unix_time and first.start_ns <= end_ns and start_ns <= first.end_ns
    if not overlaps or isinstance(first, SensorRecord):
        return overlaps
    is_new = not any(type(known) is type(first) and known.rank == first.rank for known in run.records)
    return is_new and first.rank in {window.rank for window in windows}


def _joined(run: Run, path: Path, records: tuple[Record, ...]) -> Run:
    """Of a run with traces there is a breakdown, whatever the record lacks."""
    t0_ns = run.experiment.t0_unix_ns
    placed = [
        replace(
            record, source=str(path), cannot_say=tuple(d for d in record.cannot_say if d[0] != "breakdown")
        ).shifted(-t0_ns)
        for record in records
    ]
    return _with_sensors(replace(run, records=(*run.records, *placed)))


def _groups(alone: list[tuple[Path, tuple[Record, ...]]]) -> list[list[tuple[Path, tuple[Record, ...]]]]:
    groups: list[list[tuple[Path, tuple[Record, ...]]]] = []
    for one in alone:
        home = next((group for group in groups if all(_go_together(one, other) for other in group)), None)
        if home is None:
            groups.append([one])
        else:
            home.append(one)
    return groups


def _go_together(one: tuple[Path, tuple[Record, ...]], other: tuple[Path, tuple[Record, ...]]) -> bool:
    """Two ranks' files of one kind whose names differ in numbers only and whose times overlap (recorders' nearly)."""
    (path, (first, *_)), (known_path, (known, *_)) = one, other
    if path.parent != known_path.parent or _DIGITS.sub("", path.name) != _DIGITS.sub("", known_path.name):
        return False
    if type(first) is not type(known) or first.rank == known.rank or "order" in (first.rank_from, known.rank_from):
        return False
    if not (first.has_unix_time and known.has_unix_time):
        return isinstance(first, FlightRecord)
    # A rank that hangs early has called nothing while the others went on.
    slack_ns = _HOUR_NS if isinstance(first, FlightRecord) else 0
    return first.start_ns <= known.end_ns + slack_ns and known.start_ns <= first.end_ns + slack_ns


def _run(group: list[tuple[Path, tuple[Record, ...]]]) -> Run:
    named = [replace(record, source=str(path)) for path, records in group for record in records]
    has_time = all(record.has_unix_time for record in named)
    t0_unix_ns = min(record.start_ns for record in named) if has_time else 0
    placed = [_ranked(record).shifted(-t0_unix_ns) for record in named]
    path = group[0][0] if len(group) == 1 else group[0][0].parent
    end_ns = max(record.end_ns for record in placed)
    run = fold(_experiment(path, placed, t0_unix_ns), (), now_ns=end_ns, path=str(path))
    ordered = tuple(sorted(placed, key=lambda record: (record.rank, getattr(record, "device", 0))))
    return _with_sensors(replace(run, records=ordered, last_entry_ns=end_ns))


def _ranked(record: Record) -> Record:
    return replace(record, rank=0) if record.rank < 0 and not isinstance(record, SensorRecord) else record


def _experiment(path: Path, records: list[Record], t0_unix_ns: int) -> Experiment:
    ranks = {record.rank for record in records if not isinstance(record, SensorRecord)}
    kinds = {record.device_kind for record in records if isinstance(record, MemoryRecord)} - {"none"}
    sensors = [record for record in records if isinstance(record, SensorRecord)]
    return Experiment(
        t0_unix_ns=t0_unix_ns,
        strategy="",
        title=path.name,
        framework="torch" if ranks else "",
        ranks=len(ranks),
        device_kind=min(kinds, default="gpu" if sensors else "none"),
        model="",
        devices=[name for record in sensors for name in record.device_names],
    )


def _with_sensors(run: Run) -> Run:
    """Readings go where a recording has them, so that every question finds them there."""
    sensors = [record for record in run.records if isinstance(record, SensorRecord)]
    if not sensors:
        return run
    failures = tuple(
        SensorFailed(t_ns=record.start_ns, device=device, field=field, why=why)
        for record in sensors
        for device, field, why in record.failed
    )
    return replace(run, samples=_merged([record.samples for record in sensors]), sensor_failures=failures)


def _merged(tables: list[SampleTable]) -> SampleTable:
    """Readings of several logs in one table, by time."""
    if len(tables) == 1:
        return tables[0]
    devices = tuple(sorted({name for table in tables for name in table.devices}))
    fields = tuple(sorted({name for table in tables for name in table.fields}))
    device = np.concatenate([_renumbered(table.device, table.devices, devices) for table in tables])
    field = np.concatenate([_renumbered(table.field, table.fields, fields) for table in tables])
    time_ns = np.concatenate([table.time_ns for table in tables])
    value = np.concatenate([table.value for table in tables])
    order = np.lexsort((field, device, time_ns))
    return SampleTable(time_ns[order], device[order], field[order], value[order], devices, fields)


def _renumbered(
    numbers: np.typing.NDArray[np.int32], names: tuple[str, ...], table: tuple[str, ...]
) -> np.typing.NDArray[np.int32]:
    places = np.array([table.index(name) for name in names], dtype=np.int32)
    return places[numbers] if len(places) else numbers
