"""The compiled programs that lie in an xplane file: what each instruction does, whatever it is called.

JAX names instructions after its own operations, and names alone can mislead: an ``all_gather.8`` may be the
transposition that follows the gathering ``all_gather.7``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.xplane_events import Told
from meshscope.readers.xplane_lines import Piece
from meshscope.readers.xplane_messages import message
from meshscope.readers.xplane_rows import Rows, Tables
from meshscope.readers.xplane_space import Plane, Space

Ints = npt.NDArray[np.int64]
Instruction = tuple[Ints, str, int | None]
"""Places of rows, the instruction that they carry out, and its program where they say it."""

PROGRAM = "the compiled program"
"""The rule cited where the program says what an instruction is."""


@dataclass(frozen=True)
class Programs:
    """Instruction → opcode by program id; empty where the file holds no program."""

    opcodes: dict[int, dict[str, str]]

    def opcode(self, program: int | None, instruction: str) -> str:
        """What the instruction does (``all-reduce``); "" where no program in the file says it."""
        return "" if program is None else self.opcodes.get(program, {}).get(instruction, "")

    def tell(self, rows: Rows, instructions: Iterable[Instruction], tables: Tables) -> None:
        """Sets kinds of rows by their programs.

        A user's rule has decided already; copies that carry out a collective are part of it.
        """
        yours = np.isin(rows.rule, [tables.rules[rule.name] for rule in kinds.yours()])
        for some, instruction, program in instructions:
            opcode = self.opcode(program, instruction)
            at = some[~yours[some]]
            if not opcode or not len(at):
                continue
            if kinds.INSTRUCTIONS[0].finds(opcode):
                rows.kind[at], rows.rule[at] = Kind.COLLECTIVE, tables.rules[PROGRAM]
                rows.collective[at] = tables.collectives[kinds.collective(opcode)]
            elif kinds.JAX.finds(instruction) and len(at := at[rows.kind[at] == Kind.COLLECTIVE]):
                rows.kind[at], rows.rule[at], rows.collective[at] = Kind.COMPUTE, tables.rules[PROGRAM], -1


def instructions(plane: Plane, piece: Piece, rows: Ints, instruction: int) -> Iterator[Instruction]:
    """Each instruction of each program that some rows carry out; ``instruction`` is the stat that says which."""
    program = plane.stat_ids.get("program_id")
    codes, names = piece.events.stats(plane, rows, instruction)
    untold = Told(np.full(len(rows), -1, dtype=np.int32), ())
    of, numbers = untold if program is None else piece.events.stats(plane, rows, program)
    pair = codes.astype(np.int64) * (len(numbers) + 1) + of + 1
    order = np.argsort(pair, kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1):
        if len(some):
            number = numbers[of[some[0]]] if of[some[0]] >= 0 else None
            yield some, str(names[codes[some[0]]]), number if isinstance(number, int) else None


def programs(space: Space) -> Programs:
    """What the plane ``/host:metadata`` holds; a program that is damaged is left out."""
    found: dict[int, dict[str, str]] = {}
    for plane in (plane for plane in space.planes if plane.name == "/host:metadata"):
        content, program = plane.stat_ids.get("Hlo Proto"), plane.stat_ids.get("program_id")
        for entry in plane.event_entries():
            stats = {stat.metadata_id: stat for stat in entry.value.stats if stat.metadata_id in (content, program)}
            number = plane.value(stats[program]) if program in stats else entry.key or entry.value.id
            if content in stats and isinstance(number, int):
                found[number] = _opcodes(stats[content].bytes_value)
    return Programs(found)


def _opcodes(content: bytes) -> dict[str, str]:
    try:
        module = message("Program").FromString(content).module
    except DecodeError:
        return {}
    return {
        instruction.name.decode("utf-8", "replace"): instruction.opcode.decode("utf-8", "replace")
        for computation in module.computations
        for instruction in computation.instructions
    }
