"""Rows of GPU and TPU planes: operations are the events of ``Stream #…`` and ``XLA Ops`` lines.

Other lines (Steps, XLA Modules, Framework …) repeat the same time from another point of view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.xplane_carriers import Carriers
from meshscope.readers.xplane_lines import Line, Piece
from meshscope.readers.xplane_programs import PROGRAM, Programs, instructions
from meshscope.readers.xplane_rows import Rows, Tables, joined, with_async_pairs
from meshscope.readers.xplane_space import Plane, Space

Ints = npt.NDArray[np.int64]

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


def device_rows(plane: Plane, tables: Tables, programs: Programs) -> Rows:
    """The operations of one device."""
    parts = (part for line in _operation_lines(plane) for part in _line_rows(plane, line, tables, programs))
    rows = with_async_pairs(joined(parts), tuple(tables.names))
    # Asynchronous copies run beside compute and are no work of the core; collectives there are one interval each.
    beside = [line for line in plane.lines if line.name == "Async XLA Ops"]
    apart = [
        part.take(part.kind == Kind.COLLECTIVE) for line in beside for part in _line_rows(plane, line, tables, programs)
    ]
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


def _line_rows(plane: Plane, line: Line, tables: Tables, programs: Programs) -> Iterator[Rows]:
    """The events of a line, some at a time."""
    is_stream = line.name.startswith("Stream #")
    carriers = Carriers(plane, plane.stat_ids.get("hlo_op"))
    for piece in line.pieces():
        codes, names = plane.names(piece)
        name = tables.names.codes(names)[codes]
        rules = kinds.XLA_KERNELS if is_stream else kinds.INSTRUCTIONS
        rows = tables.rows(name, piece.start_ns, piece.end_ns, lane=line.name, rules=rules)
        if is_stream:
            _tell_by_instruction(plane, piece, carriers.of(piece), rows, tables, programs)
        yield rows


def _tell_by_instruction(plane: Plane, piece: Piece, at: Ints, rows: Rows, tables: Tables, programs: Programs) -> None:
    """A kernel with a name of its own is a collective when the instruction it carries out is one.

    ``at`` are the rows that say which.
    """
    wanted = plane.stat_ids.get("hlo_op")
    if wanted is None or not len(at):
        return
    yours = np.isin(rows.rule, [tables.rules[rule.name] for rule in kinds.yours()])
    for some, instruction, number in instructions(plane, piece, at, wanted):
        told = programs.opcode(number, instruction)
        rule = _rule_of(told or instruction)
        if rule is not None:
            mine = at[some][~yours[at[some]]]
            rows.kind[mine], rows.rule[mine] = Kind.COLLECTIVE, tables.rules[PROGRAM if told else rule.name]
            rows.collective[mine] = tables.collectives[kinds.collective(told or instruction)]


def _rule_of(instruction: str) -> kinds.Rule | None:
    return next((rule for rule in kinds.INSTRUCTIONS[:2] if rule.finds(instruction)), None)
