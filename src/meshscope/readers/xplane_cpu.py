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
from meshscope.readers.tables import Table
from meshscope.readers.xplane_carriers import Carriers
from meshscope.readers.xplane_lines import Line, Piece
from meshscope.readers.xplane_programs import Programs, instructions
from meshscope.readers.xplane_rows import NO_ROWS, Gathering, Rows, Tables, concatenated, unknown, with_async_pairs
from meshscope.readers.xplane_space import Plane, Space

Ints = npt.NDArray[np.int64]
Marks = list[tuple[int, int, int]]

_NONE = np.empty(0, dtype=np.int64)
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
        carriers = Carriers(plane, wanted)
        for piece in line.pieces():
            rows = carriers.of(piece)
            codes, values = piece.events.stats(plane, rows, wanted)
            numbers = [plane.number(value) for value in values]
            for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
                if (number := numbers[code]) is not None:
                    marks.append((number, int(piece.start_ns[row]), int(piece.end_ns[row])))
    return marks


def host_rows(plane: Plane, tables: Tables, programs: Programs) -> Found:
    """Everything that a device of the CPU platform did, by device."""
    gathered: dict[int, Gathering] = defaultdict(Gathering)
    dropped: Counter[str] = Counter()
    for line in plane.lines:
        thread = _thread(plane, line, tables, programs)
        if not len(thread.rows):
            continue
        waits, owner = _waits(thread, line.name, tables, dropped)
        for ordinal in np.unique(thread.device).tolist():
            gathered[ordinal].add(thread.rows.take(thread.device == ordinal))
            if len(waits):
                gathered[ordinal].add(waits.take(thread.device[owner] == ordinal))
    names = tuple(tables.names)
    devices = {ordinal: with_async_pairs(gathered[ordinal].by_start(), names) for ordinal in sorted(gathered)}
    return Found(devices, step_marks(plane), dropped)


@dataclass(frozen=True, eq=False)
class _Thread:
    """What one thread did: operations, and of each its device; waits, and in ``members`` the devices of each.

    ``members`` are numbers into ``groups``, −1 where a wait names none.
    """

    rows: Rows
    device: Ints
    wait_start_ns: Ints
    wait_end_ns: Ints
    wait_names: list[str]
    members: Ints
    groups: tuple[str, ...]


def _thread(plane: Plane, line: Line, tables: Tables, programs: Programs) -> _Thread:
    op, ordinal = plane.stat_ids.get("hlo_op"), plane.stat_ids.get("device_ordinal")
    carriers, groups = Carriers(plane, op, ordinal), Table()
    waiting = np.array([n for n, name in plane.event_names.items() if name.startswith(_WAITS)], dtype=np.int64)
    parts, devices, waits = [NO_ROWS], [_NONE], [(_NONE, _NONE, _NONE, _NONE)]
    for piece in line.pieces() if op is not None and ordinal is not None else ():
        rows, device = _operations(plane, piece, carriers.of(piece), line.name, tables, programs)
        parts.append(rows)
        devices.append(device)
        at = np.flatnonzero(np.isin(piece.metadata, waiting))
        if len(at):
            members = _members(plane, piece, at, groups)
            waits.append((piece.start_ns[at], piece.end_ns[at], piece.metadata[at], members))
    rows, device = concatenated(parts), np.concatenate(devices)
    enclosing = _enclosing(rows, device, tables)
    rows.kind[enclosing], rows.rule[enclosing] = Kind.OTHER, tables.rules[ENCLOSES]
    start_ns, end_ns, metadata, members = (np.concatenate(column) for column in zip(*waits, strict=True))
    names = [plane.event_names[number] for number in metadata.tolist()]
    return _Thread(rows, device, start_ns, end_ns, names, members, tuple(groups))


def _members(plane: Plane, piece: Piece, at: Ints, groups: Table) -> Ints:
    """Of some waits the devices that wait for each other, as numbers into ``groups``; −1 where untold."""
    wanted = plane.stat_ids.get("name")
    if wanted is None:
        return np.full(len(at), -1, dtype=np.int64)
    codes, values = piece.events.stats(plane, at, wanted)
    found = [_MEMBERS.search(str(value)) for value in values]
    numbers = [groups[f"devices {one[1]}"] if one else -1 for one in found]
    return np.array([*numbers, -1], dtype=np.int64)[codes]  # −1, not carried, finds the last


def _operations(
    plane: Plane, piece: Piece, at: Ints, lane: str, tables: Tables, programs: Programs
) -> tuple[Rows, Ints]:
    """The events of a thread that carry out an instruction, and the device of each."""
    op, ordinal = plane.stat_ids["hlo_op"], plane.stat_ids["device_ordinal"]
    if not len(at):
        return NO_ROWS, at
    codes, values = piece.events.stats(plane, at, ordinal)
    numbers = [plane.number(value) for value in values]
    device = np.array([-1 if number is None else number for number in numbers], dtype=np.int64)[codes]
    at, device = at[device >= 0], device[device >= 0]
    codes, values = piece.events.stats(plane, at, op)
    name = tables.names.codes(map(str, values))[codes]
    rows = tables.rows(name, piece.start_ns[at], piece.end_ns[at], lane=lane, rules=kinds.INSTRUCTIONS)
    carried = list(instructions(plane, piece, at, op))
    programs.tell(rows, carried, tables)
    programs.describe(rows, carried, -1, tables)  # a rendezvous, where it is recorded, says the group
    return rows, device


def _enclosing(rows: Rows, device: Ints, tables: Tables) -> Ints:
    """Loops and branches always; a ``call`` when it holds another operation of its device (it may be a leaf)."""
    names = list(tables.names)
    is_control = np.array([bool(_CONTROL.match(name)) for name in names], dtype=np.bool_)
    is_call = np.array([bool(_CALL.match(name)) for name in names], dtype=np.bool_)
    found = np.flatnonzero(is_control[rows.name]).tolist()
    for row in np.flatnonzero(is_call[rows.name]).tolist():
        inside = (rows.start_ns >= rows.start_ns[row]) & (rows.end_ns <= rows.end_ns[row]) & (device == device[row])
        if inside.sum() > 1:
            found.append(row)
    return np.array(found, dtype=np.int64)


def _waits(thread: _Thread, lane: str, tables: Tables, dropped: Counter[str]) -> tuple[Rows, Ints]:
    """Waits inside the thread's collectives, and for each the row of its collective; names the group of those."""
    rows = thread.rows
    owner = _owners(rows, thread.wait_start_ns, thread.wait_end_ns)
    dropped[NOT_IN_A_COLLECTIVE] += int((owner < 0).sum())
    for wait in np.flatnonzero((owner >= 0) & (thread.members >= 0)).tolist():
        rows.group[owner[wait]] = tables.groups[thread.groups[thread.members[wait]]]
    at = np.flatnonzero(owner >= 0)
    owner = owner[at]
    waits = Rows(
        start_ns=thread.wait_start_ns[at],
        end_ns=thread.wait_end_ns[at],
        name=tables.names.codes(thread.wait_names[wait] for wait in at.tolist()),
        lane=np.full(len(at), tables.lanes[lane], dtype=np.int32),
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
