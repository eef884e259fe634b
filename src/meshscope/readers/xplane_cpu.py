"""Rows of JAX on CPU: operations carry their device and run, and spread over the threads of a pool.

So they are grouped by device, never by line. A collective's waiting for peers is recorded inside it as
``Rendezvous`` and ``Wait: pending_threads``: waiting is told apart from transfer for free. Thread-pool wrappers,
``end:`` marks and Python frames are no operations; ``while`` and ``call`` enclose operations that are recorded too.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.xplane_programs import Programs, instructions
from meshscope.readers.xplane_rows import NO_ROWS, Rows, Tables, joined, unknown, with_async_pairs
from meshscope.readers.xplane_space import Line, Plane, Space, Told

Ints = npt.NDArray[np.int64]
Marks = list[tuple[int, int, int]]

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
    marks: Marks = []
    if wanted is None:
        return marks
    for line in plane.lines:
        rows = plane.rows_with(line, wanted)
        codes, values = line.events.stats(plane, rows, wanted)
        numbers = [plane.number(value) for value in values]
        for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
            if (number := numbers[code]) is not None:
                marks.append((number, int(line.start_ns[row]), int(line.end_ns[row])))
    return marks


def host_rows(plane: Plane, tables: Tables, programs: Programs) -> Found:
    """Everything that a device of the CPU platform did, by device."""
    parts: dict[int, list[Rows]] = defaultdict(list)
    dropped: Counter[str] = Counter()
    for line in plane.lines:
        rows, device = _operations(plane, line, tables, programs)
        if not len(rows):
            continue
        waits, owner = _waits(plane, line, rows, tables, dropped)
        for ordinal in np.unique(device).tolist():
            parts[ordinal].append(rows.take(device == ordinal))
            if len(waits):
                parts[ordinal].append(waits.take(device[owner] == ordinal))
    names = tuple(tables.names)
    devices = {ordinal: with_async_pairs(joined(rows), names) for ordinal, rows in sorted(parts.items())}
    return Found(devices, step_marks(plane), dropped)


def _operations(plane: Plane, line: Line, tables: Tables, programs: Programs) -> tuple[Rows, Ints]:
    """The events of one thread that carry out an instruction, and the device of each."""
    op, ordinal = plane.stat_ids.get("hlo_op"), plane.stat_ids.get("device_ordinal")
    at = plane.rows_with(line, op, ordinal)
    if op is None or ordinal is None or not len(at):
        return NO_ROWS, at
    codes, values = line.events.stats(plane, at, ordinal)
    numbers = [plane.number(value) for value in values]
    device = np.array([-1 if number is None else number for number in numbers], dtype=np.int64)[codes]
    at, device = at[device >= 0], device[device >= 0]
    codes, values = line.events.stats(plane, at, op)
    names = tuple(map(str, values))
    name = tables.names.codes(names)[codes]
    rows = tables.rows(name, line.start_ns[at], line.end_ns[at], lane=line.name, rules=kinds.INSTRUCTIONS)
    carried = list(instructions(plane, line, at, op))
    programs.tell(rows, carried, tables)
    programs.describe(rows, carried, -1, tables)  # a rendezvous, where it is recorded, says the group
    enclosing = _enclosing(Told(codes, names), rows, device)
    rows.kind[enclosing], rows.rule[enclosing] = Kind.OTHER, tables.rules[ENCLOSES]
    return rows, device


def _enclosing(instruction: Told, rows: Rows, device: Ints) -> Ints:
    """Loops and branches always; a ``call`` when it holds another operation of its device (it may be a leaf)."""
    is_control = np.array([bool(_CONTROL.match(name)) for name in instruction.values], dtype=np.bool_)
    is_call = np.array([bool(_CALL.match(name)) for name in instruction.values], dtype=np.bool_)
    found = np.flatnonzero(is_control[instruction.codes]).tolist()
    for row in np.flatnonzero(is_call[instruction.codes]).tolist():
        inside = (rows.start_ns >= rows.start_ns[row]) & (rows.end_ns <= rows.end_ns[row]) & (device == device[row])
        if inside.sum() > 1:
            found.append(row)
    return np.array(found, dtype=np.int64)


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
        **unknown(len(at)) | {"group": rows.group[owner]},
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
