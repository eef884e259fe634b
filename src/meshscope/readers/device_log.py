"""Logs of device sensors: ``nvidia-smi --query-gpu=… --format=csv`` in all its variants, ``dmon``, ``rocm-smi --csv``.

A log has a heading with units, a heading whose cells have none, or no heading and units in the cells. Then only what
the cells themselves tell has a name, and the rest is numbered. What a driver could not read (``[N/A]``, ``ERR!``,
``-``) is missing, never zero.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from meshscope.errors import TraceError
from meshscope.readers import device_log_fields as fields
from meshscope.readers.device_log_rows import Readings, readings
from meshscope.readers.records import RecordReader, whole
from meshscope.readers.windows import EARLIEST_UNIX_NS
from meshscope.records import Doubt, Record, SensorRecord
from meshscope.samples import SampleTable
from meshscope.spans import Counts

KIND = "log of device sensors"
_NAMES = re.compile(r"\.(csv|log|txt|dmon|tsv|out)(\.gz)?$", re.IGNORECASE)
_DMON = re.compile(r"^#\s*((Date|Time)\s+)*gpu\b.*\b(pwr|g?temp|sm|mem|mclk|pclk|fb|rxpci)\b", re.IGNORECASE)
_PMON = re.compile(r"^#\s*((Date|Time)\s+)*gpu\b.*\bpid\b", re.IGNORECASE)
_UNITS = ("%", "MiB", "W", "MHz")
_CUT = "line that is cut short"
_OTHER = "line that is no reading"
_AGAIN = "heading once more: the log was restarted"


def sniff(head: bytes) -> bool:
    """A heading with a sensor that is known by name, dmon's, or lines whose cells have a GPU's units."""
    lines = [line for line in head.decode("utf-8", "replace").lstrip("\ufeff").splitlines()[:8] if line.strip()]
    return any(_DMON.match(line) or _PMON.match(line) or _is_heading(_cells(line)) for line in lines) or (
        any(_is_bare(_cells(line)) for line in lines[:2])
    )


def read(path: Path) -> tuple[Record, ...]:
    """One record for all devices of the log."""
    content, cut_short = whole(path)
    text = content.decode("utf-8", "replace").lstrip("\ufeff")
    dropped: Counter[str] = Counter()
    repaired: Counter[str] = Counter()
    parts = [readings(sheet.heading, sheet.rows) for sheet in _sheets(text, dropped, repaired, path) if sheet.rows]
    if not parts:
        raise TraceError(
            f"{path.name} has the heading of a device log and no readings.", hint="Log for longer: nvidia-smi -l 1."
        )
    if cut_short:
        dropped[_CUT] += 1
    return (_record(path, parts, dropped, repaired, is_complete=not (cut_short or dropped[_CUT])),)


@dataclass
class _Sheet:
    """Rows of one heading; it is empty where the log has none."""

    heading: list[str]
    rows: list[list[str]]


def _cells(line: str) -> list[str]:
    if '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True), [])]


def _is_heading(cells: list[str]) -> bool:
    return len(cells) > 1 and not any(cell[:1].isdecimal() for cell in cells) and any(map(fields.is_reading, cells))


def _is_bare(cells: list[str]) -> bool:
    return sum(fields.unit_of(cell) in _UNITS for cell in cells) >= 2


def _sheets(text: str, dropped: Counter[str], repaired: Counter[str], path: Path) -> list[_Sheet]:
    lines = text.splitlines()
    if lines and not text.endswith(("\n", "\r")) and len(lines) > 1:
        # A number may have lost its last digits there, and nothing shows it.
        dropped[_CUT] += 1
        lines.pop()
    sheets = [_Sheet([], [])]
    is_dmon = False
    for line in filter(str.strip, lines):
        if _PMON.match(line):
            raise TraceError(
                f"{path.name} is a log of nvidia-smi pmon: it tells of processes, not of devices.",
                hint="Log with nvidia-smi dmon -o DT, or nvidia-smi --query-gpu=… --format=csv -l 1.",
            )
        if line.startswith("#"):
            is_dmon = _take_dmon_heading(line, sheets, repaired) or is_dmon
            continue
        cells = line.split() if is_dmon else _cells(line)
        if not is_dmon and _is_heading(cells):
            _begin(cells, sheets, repaired)
        else:
            _take(cells, sheets[-1], dropped)
    _drop_torn(sheets[-1], dropped)
    return sheets


def _take_dmon_heading(line: str, sheets: list[_Sheet], repaired: Counter[str]) -> bool:
    """dmon repeats its two lines of heading every so often; the second has the units."""
    if not _DMON.match(line):
        return False
    heading = [{"gpu": "index"}.get(word.lower(), word) for word in line.lstrip("# \t").split()]
    if sheets[-1].heading != heading:
        _begin(heading, sheets, repaired)
    return True


def _begin(heading: list[str], sheets: list[_Sheet], repaired: Counter[str]) -> None:
    if sheets[-1].heading == heading:
        repaired[_AGAIN] += 1
    else:
        sheets.append(_Sheet(heading, []))


def _take(cells: list[str], sheet: _Sheet, dropped: Counter[str]) -> None:
    width = len(sheet.heading) or (len(sheet.rows[0]) if sheet.rows else len(cells))
    if len(cells) == width and (sheet.heading or sheet.rows or _is_bare(cells)):
        sheet.rows.append(cells)
    else:
        dropped[_CUT if 1 < len(cells) < width else _OTHER] += 1


def _drop_torn(sheet: _Sheet, dropped: Counter[str]) -> None:
    """The last line, where its last cell has lost the unit that the line before has."""
    if len(sheet.rows) < 2:
        return
    before, last = sheet.rows[-2][-1], sheet.rows[-1][-1]
    if fields.unit_of(before) and fields.is_number(last) and not fields.unit_of(last):
        sheet.rows.pop()
        dropped[_CUT] += 1


def _record(
    path: Path, parts: list[Readings], dropped: Counter[str], repaired: Counter[str], *, is_complete: bool
) -> SensorRecord:
    for part in parts:
        dropped += part.dropped
    samples, failed = _samples(parts)
    is_unix = all(part.is_unix for part in parts)
    zero_ns = 0 if is_unix or not len(samples.time_ns) else int(samples.time_ns.min())
    end_ns = int(samples.time_ns.max()) if len(samples.time_ns) else 0
    models = {device: model for part in parts for device, model in part.models.items()}
    record = SensorRecord(
        kind=KIND,
        source=path.name,
        start_ns=int(samples.time_ns.min()) if len(samples.time_ns) else 0,
        end_ns=end_ns,
        has_unix_time=is_unix,
        counts=Counts(read=sum(part.rows for part in parts), dropped=dict(+dropped), repaired=dict(+repaired)),
        cannot_say=(*_doubts(parts, zero_ns), *dict.fromkeys(doubt for part in parts for doubt in part.doubts)),
        is_complete=is_complete,
        samples=samples,
        failed=failed,
        device_names=tuple(f"{device}: {model}" for device, model in sorted(models.items())),
    )
    return record.shifted(-zero_ns) if zero_ns else record


def _doubts(parts: list[Readings], zero_ns: int) -> list[Doubt]:
    said = [("breakdown", f"a {KIND} holds no device work")]
    if not all(part.has_times for part in parts):
        said.append(
            ("time", "the log has no times: readings are in order, one second set for each round of the devices")
        )
    elif not all(part.is_unix for part in parts):
        first = str(np.datetime64(zero_ns, "ns").astype("datetime64[ms]")).replace("T", " ")
        where = f"; its first reading is of {first} there" if zero_ns >= EARLIEST_UNIX_NS else ""
        said.append(("t0_unix_ns", f"the log has the local time of a machine whose zone it does not tell{where}"))
    return said


def _samples(parts: list[Readings]) -> tuple[SampleTable, tuple[tuple[str, str, str], ...]]:
    """The readings of all parts, one row for each number that was read; and fields without any."""
    devices = tuple(sorted({device for part in parts for device in part.devices}))
    names = tuple(sorted({column.field for part in parts for column in part.columns}))
    rows = [
        (part.time_ns[known], np.array([devices.index(part.devices[row]) for row in known.tolist()], dtype=np.int32),
         np.full(len(known), names.index(column.field), dtype=np.int32), column.value[known])
        for part in parts for column in part.columns if len(known := np.flatnonzero(np.isfinite(column.value)))
    ]  # fmt: skip
    empty = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    time_ns, device, field, value = (np.concatenate(c) for c in zip(*rows, strict=True)) if rows else empty
    order = np.lexsort((field, device, time_ns))
    table = SampleTable(time_ns[order], device[order], field[order], value[order], devices, names)
    whys = {column.field: column.why for part in parts for column in part.columns if column.why}
    told = {(devices[d], names[f]) for d, f in set(zip(device.tolist(), field.tolist(), strict=True))}
    return table, tuple(
        (one, name, whys.get(name, "the log has no number for it"))
        for one in devices for name in names if (one, name) not in told
    )  # fmt: skip


RECORD_READER = RecordReader(format="device log", names=_NAMES, sniff=sniff, read=read, called=".csv, .log, .txt, .out")
