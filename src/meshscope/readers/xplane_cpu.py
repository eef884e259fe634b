"""Rows of JAX on CPU: operations carry their device and run, and spread over the threads of a pool.

So they are grouped by device, never by line. A collective's waiting for peers is recorded inside it as
``Rendezvous`` and ``Wait: pending_threads``: waiting is told apart from transfer for free. Thread-pool wrappers,
``end:`` marks and Python frames are no operations; ``while`` and ``call`` enclose operations that are recorded too.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.xplane_programs import Programs
from meshscope.readers.xplane_rows import Rows, Tables, joined, with_async_pairs
from meshscope.readers.xplane_space import Line, Plane, Space

Ints = npt.NDArray[np.int64]
Marks = list[tuple[int, int, int]]
Operation = tuple[int, str, int, int | None]

_WAITS = ("Rendezvous", "Wait: pending_threads")
_MEMBERS = re.compile(r"global_devices=\[([\d, ]*)\]")
_CONTROL = re.compile(r"^(while|conditional)[.\d]*$")
_CALL = re.compile(r"^call[.\d]*$")
ENCLOSES = "encloses operations that are recorded themselves"
RENDEZVOUS = "rendezvous of a collective"
NOT_IN_A_COLLECTIVE = "a rendezvous outside any recorded collective"


@dataclass(frozen=True, eq=False)
class Found:
    """Rows by device ordinal, step marks (number, start, end) and what could not be placed."""

    devices: dict[int, Rows]
    marks: Marks
    dropped: Counter[str]


def host_plane(space: Space) -> Plane | None:
    return next((plane for plane in space.planes if plane.name == "/host:CPU"), None)


def step_marks(plane: Plane) -> Marks:
    """Events with a ``step_num``: what ``StepTraceAnnotation`` leaves."""
    wanted = plane.stat_ids.get("step_num")
    return [
        (number, int(line.start_ns[row]), int(line.end_ns[row]))
        for line in plane.lines
        for row in plane.rows_with(line, wanted).tolist()
        for stat in line.events[row].stats
        if stat.metadata_id == wanted and (number := plane.number(stat)) is not None
    ]


def host_rows(plane: Plane, tables: Tables, programs: Programs) -> Found:
    """Everything that a device of the CPU platform did, by device."""
    parts: dict[int, list[Rows]] = defaultdict(list)
    dropped: Counter[str] = Counter()
    for line in plane.lines:
        operations = list(_operations(plane, line))
        if not operations:
            continue
        rows, device = _told(line, operations, tables, programs)
        waits, owner = _waits(plane, line, rows, tables, dropped)
        for ordinal in np.unique(device).tolist():
            parts[ordinal].append(rows.take(device == ordinal))
            if len(waits):
                parts[ordinal].append(waits.take(device[owner] == ordinal))
    names = tuple(tables.names)
    devices = {ordinal: with_async_pairs(joined(rows), names) for ordinal, rows in sorted(parts.items())}
    return Found(devices, step_marks(plane), dropped)


def _operations(plane: Plane, line: Line) -> Iterator[Operation]:
    """(row, instruction, device ordinal, program) of the events that carry out an instruction."""
    op, ordinal = plane.stat_ids.get("hlo_op"), plane.stat_ids.get("device_ordinal")
    program = plane.stat_ids.get("program_id")
    for row in plane.rows_with(line, op, ordinal).tolist():
        event = line.events[row]
        stats = {stat.metadata_id: stat for stat in event.stats if stat.metadata_id in (op, ordinal, program)}
        device = plane.number(stats[ordinal])
        if device is not None:
            number = plane.value(stats[program]) if program in stats else None
            yield row, str(plane.value(stats[op])), device, number if isinstance(number, int) else None


def _told(line: Line, operations: list[Operation], tables: Tables, programs: Programs) -> tuple[Rows, Ints]:
    """The operations of one thread and the device of each."""
    at = np.array([row for row, _, _, _ in operations], dtype=np.int64)
    name = tables.names.codes(instruction for _, instruction, _, _ in operations)
    device = np.array([ordinal for _, _, ordinal, _ in operations], dtype=np.int64)
    rows = tables.rows(name, line.start_ns[at], line.end_ns[at], lane=line.name, rules=kinds.INSTRUCTIONS)
    programs.tell(rows, ((at, program, name) for at, (_, name, _, program) in enumerate(operations)), tables)
    enclosing = _enclosing([instruction for _, instruction, _, _ in operations], rows, device)
    rows.kind[enclosing], rows.rule[enclosing] = Kind.OTHER, tables.rules[ENCLOSES]
    return rows, device


def _enclosing(instructions: list[str], rows: Rows, device: Ints) -> list[int]:
    """Loops and branches always; a ``call`` when it holds another operation of its device (it may be a leaf)."""
    found = [row for row, name in enumerate(instructions) if _CONTROL.match(name)]
    for row in (row for row, name in enumerate(instructions) if _CALL.match(name)):
        inside = (rows.start_ns >= rows.start_ns[row]) & (rows.end_ns <= rows.end_ns[row]) & (device == device[row])
        if inside.sum() > 1:
            found.append(row)
    return found


def _waits(plane: Plane, line: Line, rows: Rows, tables: Tables, dropped: Counter[str]) -> tuple[Rows, Ints]:
    """Waits inside the thread's collectives, and for each the row of its collective; names the group of those."""
    waiting = [number for number, name in plane.event_names.items() if name.startswith(_WAITS)]
    at = np.flatnonzero(np.isin(line.metadata, waiting))
    owner = _owners(rows, line.start_ns[at], line.end_ns[at])
    dropped[NOT_IN_A_COLLECTIVE] += int((owner < 0).sum())
    for wait, row in zip(at.tolist(), owner.tolist(), strict=True):
        members = _MEMBERS.search(str(plane.stats(line.events[wait]).get("name", ""))) if row >= 0 else None
        if members:
            rows.group[row] = tables.groups[f"devices {members[1]}"]
    at, owner = at[owner >= 0], owner[owner >= 0]
    name = tables.names.codes(plane.event_names[number] for number in line.metadata[at].tolist())
    waits = Rows(
        start_ns=line.start_ns[at],
        end_ns=line.end_ns[at],
        name=name,
        lane=np.full(len(at), tables.lanes[line.name], dtype=np.int32),
        kind=np.full(len(at), Kind.WAIT, dtype=np.uint8),
        rule=np.full(len(at), tables.rules[RENDEZVOUS], dtype=np.int32),
        collective=rows.collective[owner],
        group=rows.group[owner],
    )
    return waits, owner


def _owners(rows: Rows, start_ns: Ints, end_ns: Ints) -> Ints:
    """The collective of the same thread around each wait; −1 where there is none."""
    comm = np.flatnonzero(rows.kind == Kind.COLLECTIVE)
    if not len(comm):
        return np.full(len(start_ns), -1, dtype=np.int64)
    comm = comm[np.argsort(rows.start_ns[comm], kind="stable")]
    at = np.searchsorted(rows.start_ns[comm], start_ns, side="right") - 1
    owner = comm[np.maximum(at, 0)]
    return np.where((at >= 0) & (end_ns <= rows.end_ns[owner]), owner, -1)
