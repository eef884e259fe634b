"""Rows of GPU and TPU planes: operations are the events of ``Stream #…`` and ``XLA Ops`` lines.

Other lines (Steps, XLA Modules, Framework …) repeat the same time from another point of view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.hlo_modes import names_commands
from meshscope.readers.xplane_carriers import Carriers
from meshscope.readers.xplane_lines import Line, Piece
from meshscope.readers.xplane_programs import PROGRAM, Carried, Programs, instructions, say
from meshscope.readers.xplane_rows import Rows, Tables, joined, with_async_pairs
from meshscope.readers.xplane_space import Plane, Space
from meshscope.spans import How

Ints = npt.NDArray[np.int64]

_INSTRUCTION = re.compile(r"^%?([\w.-]+)(?=\s|=|$)")
_DEVICE = re.compile(r"^/device:(?!CUSTOM)\w+:([0-9]{1,6})(?![0-9])")
_ENCLOSING = re.compile(r"^%?(while|conditional|call)[.\d]*(\s|=|$)")


def device_planes(space: Space) -> list[tuple[int, Plane]]:
    """Planes of devices that did something, with the device's number. A device's own plane beats one of its parts."""
    numbered = [
        (int(found[1]), found.end() == len(plane.name), plane)
        for plane in space.planes
        if (found := _DEVICE.match(plane.name)) and any(map(len, _operation_lines(plane)))
    ]
    own = {number for number, is_own, _ in numbered if is_own}
    return [(number, plane) for number, is_own, plane in numbered if is_own or number not in own]


def device_kind(plane: Plane) -> str:
    return "tpu" if "TPU" in plane.name.upper() else "gpu"


def device_rows(plane: Plane, number: int, tables: Tables, programs: Programs) -> Rows:
    """The operations of one device, whose plane has that number."""
    carried = _Carried(plane, number, tables, programs)
    parts = (part for line in _operation_lines(plane) for part in carried.rows(line))
    rows = with_async_pairs(joined(parts), tuple(tables.names))
    # Asynchronous copies run beside compute and are no work of the core; collectives there are one interval each.
    beside = [line for line in plane.lines if line.name == "Async XLA Ops"]
    apart = [part.take(part.kind == Kind.COLLECTIVE) for line in beside for part in carried.rows(line)]
    return joined([rows, *apart]) if any(map(len, apart)) else rows


def encloses(rows: Rows, names: tuple[str, ...]) -> int:
    """How many control-flow operations lie around others and count as compute all the same."""
    is_named = np.array([bool(_ENCLOSING.match(name)) for name in names], dtype=bool)
    return int(is_named[rows.name].sum())


def device_steps(plane: Plane) -> list[tuple[int, int, int]]:
    """(number, start, end) of the plane's own steps."""
    found = []
    for line in plane.lines:
        for piece in line.pieces() if line.name == "Steps" else ():
            codes, names = plane.names(piece)
            numbers = [int(name) if name.isdecimal() and len(name) < 10 else -1 for name in names]
            bounds = zip(codes.tolist(), piece.start_ns.tolist(), piece.end_ns.tolist(), strict=True)
            found += [(numbers[code], start, end) for code, start, end in bounds if numbers[code] >= 0]
    return found


def _operation_lines(plane: Plane) -> list[Line]:
    return [line for line in plane.lines if line.name == "XLA Ops" or line.name.startswith("Stream #")]


@dataclass(frozen=True)
class _Carried:
    """Rows of a plane's lines, with what the instructions that they carry out tell of them."""

    plane: Plane
    number: int
    tables: Tables
    programs: Programs

    def rows(self, line: Line) -> Iterator[Rows]:
        """The events of a line, some at a time."""
        is_stream = line.name.startswith("Stream #")
        carriers = Carriers(self.plane, self.plane.stat_ids.get("hlo_op"))
        for piece in line.pieces():
            codes, names = self.plane.names(piece)
            name = self.tables.names.codes(names)[codes]
            rules = kinds.XLA_KERNELS if is_stream else kinds.INSTRUCTIONS
            rows = self.tables.rows(name, piece.start_ns, piece.end_ns, lane=line.name, rules=rules)
            if is_stream:
                self._tell_kernels(piece, carriers.of(piece), rows)
                self._tell_commands(piece, rows)
            else:
                self._tell_operations(piece, rows)
            yield rows

    def _tell_kernels(self, piece: Piece, at: Ints, rows: Rows) -> None:
        """A kernel with a name of its own is a collective when the instruction it carries out is one.

        ``at`` are the rows that say which.
        """
        wanted = self.plane.stat_ids.get("hlo_op")
        if wanted is None or not len(at):
            return
        yours = np.isin(rows.rule, [self.tables.rules[rule.name] for rule in kinds.yours()])
        carried = [(at[some], name, program) for some, name, program in instructions(self.plane, piece, at, wanted)]
        for some, instruction, number in carried:
            if names_commands(instruction):
                say(rows, some, How.COMMANDS)
            told = self.programs.opcode(number, instruction)
            rule = _rule_of(told or instruction)
            if rule is not None:
                mine = some[~yours[some]]
                rows.kind[mine], rows.rule[mine] = Kind.COLLECTIVE, self.tables.rules[PROGRAM if told else rule.name]
                rows.collective[mine] = self.tables.collectives[kinds.collective(told or instruction)]
        for stat in ("tf_op", "name"):  # of these the second says more, and the program the most
            self._set_paths(piece, rows, at, stat)
        self.programs.describe(rows, carried, self.number, self.tables)

    def _tell_commands(self, piece: Piece, rows: Rows) -> None:
        """A kernel that was launched as part of a graph carries the graph's number, on NVIDIA."""
        if self._graph is not None:
            everything = np.arange(len(rows), dtype=np.int64)
            say(rows, everything[piece.events.carrying(everything, self._graph)], How.COMMANDS)

    def _set_paths(self, piece: Piece, rows: Rows, at: Ints, stat: str) -> None:
        wanted = self.plane.stat_ids.get(stat)
        at = at[piece.events.carrying(at, wanted)] if wanted is not None else at[:0]
        if wanted is None or not len(at):
            return
        codes, values = piece.events.stats(self.plane, at, wanted)
        paths = [_path(value) for value in values]
        numbers = np.array([self.tables.paths[path] if path else -1 for path in paths], dtype=np.int32)[codes]
        rows.path[at[numbers >= 0]] = numbers[numbers >= 0]

    def _tell_operations(self, piece: Piece, rows: Rows) -> None:
        """On a TPU it is the names of operations that carry the program and the path, not each event."""
        carried: list[Carried] = []
        order = np.argsort(piece.metadata, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(piece.metadata[order])) + 1):
            metadata = int(piece.metadata[some[0]])
            stats, name = self._about.get(metadata, {}), self.plane.event_names.get(metadata, "")
            if path := _path(stats.get("tf_op")):
                rows.path[some] = self.tables.paths[path]
            instruction, program = _INSTRUCTION.match(name), stats.get("program_id")
            if instruction is not None and isinstance(program, int):
                carried.append((some, instruction[1], program))
        self.programs.describe(rows, carried, self.number, self.tables)

    @cached_property
    def _graph(self) -> int | None:
        return self.plane.stat_ids.get("cuda_graph_id")

    @cached_property
    def _about(self) -> dict[int, dict[str, Any]]:
        return {entry.key or entry.value.id: self.plane.stats(entry.value) for entry in self.plane.event_entries()}


def _path(value: Any) -> str:
    """The path that a stat holds, ``path:type`` in one called ``tf_op``; "" for an argument's name or a module."""
    path = value.rpartition(":")[0] or value if isinstance(value, str) else ""
    return path if "/" in path else ""


def _rule_of(instruction: str) -> kinds.Rule | None:
    return next((rule for rule in kinds.INSTRUCTIONS[:2] if rule.finds(instruction)), None)
