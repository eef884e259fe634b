"""The compiled programs that lie in an xplane file: what each instruction does, whatever it is called.

JAX names instructions after its own operations, and names alone can mislead: an ``all_gather.8`` may be the
transposition that follows the gathering ``all_gather.7``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.xplane_messages import message
from meshscope.readers.xplane_rows import Rows, Tables
from meshscope.readers.xplane_space import Space

PROGRAM = "the compiled program"
"""The rule cited where the program says what an instruction is."""


@dataclass(frozen=True)
class Programs:
    """Instruction → opcode by program id; empty where the file holds no program."""

    opcodes: dict[int, dict[str, str]]

    def opcode(self, program: int | None, instruction: str) -> str:
        """What the instruction does (``all-reduce``); "" where no program in the file says it."""
        return "" if program is None else self.opcodes.get(program, {}).get(instruction, "")

    def tell(self, rows: Rows, instructions: Iterable[tuple[int, int | None, str]], tables: Tables) -> None:
        """Sets kinds of rows, given as (row, program, instruction), by their programs.

        A user's rule has decided already; copies that carry out a collective are part of it.
        """
        yours = np.isin(rows.rule, [tables.rules[rule.name] for rule in kinds.yours()])
        for row, program, instruction in instructions:
            opcode = self.opcode(program, instruction)
            if not opcode or yours[row]:
                continue
            if kinds.INSTRUCTIONS[0].finds(opcode):
                rows.kind[row], rows.rule[row] = Kind.COLLECTIVE, tables.rules[PROGRAM]
                rows.collective[row] = tables.collectives[kinds.collective(opcode)]
            elif rows.kind[row] == Kind.COLLECTIVE and kinds.JAX.finds(instruction):
                rows.kind[row], rows.rule[row], rows.collective[row] = Kind.COMPUTE, tables.rules[PROGRAM], -1


def programs(space: Space) -> Programs:
    """What the plane ``/host:metadata`` holds; a program that is damaged is left out."""
    found: dict[int, dict[str, str]] = {}
    for plane in (plane for plane in space.planes if plane.name == "/host:metadata"):
        content, program = plane.stat_ids.get("Hlo Proto"), plane.stat_ids.get("program_id")
        for entry in plane.message.event_metadata:
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
