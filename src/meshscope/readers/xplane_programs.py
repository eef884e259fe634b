"""The compiled programs that lie in an xplane file: what each instruction does, whatever it is called.

JAX names instructions after its own operations, and names alone can mislead: an ``all_gather.8`` may be the
transposition that follows the gathering ``all_gather.7``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.hlo_groups import Groups
from meshscope.readers.hlo_program import Instruction, instructions_of
from meshscope.readers.xplane_events import Told
from meshscope.readers.xplane_lines import Piece
from meshscope.readers.xplane_rows import Rows, Tables
from meshscope.readers.xplane_space import Plane, Space
from meshscope.spans import How

Ints = npt.NDArray[np.int64]
Carried = tuple[Ints, str, int | None]
"""Places of rows, the instruction that they carry out, and its program where they say it."""

PROGRAM = "the compiled program"
"""The rule cited where the program says what an instruction is."""

_UNSIGNED = (1 << 64) - 1


@dataclass(frozen=True)
class Programs:
    """Programs by id, each read once it is asked for; empty where the file holds none.

    ``devices`` are the numbers of the device planes: those of a program's own devices where it has no others.
    """

    contents: dict[int, bytes]
    devices: frozenset[int] = frozenset()
    _known: dict[int, dict[str, Instruction]] = field(default_factory=dict)

    def find(self, program: int | None, instruction: str) -> Instruction | None:
        """None where no program in the file has the instruction."""
        if program is None:
            return None
        # An id is a hash, which some stats hold as a signed number and others as an unsigned one.
        number = program & _UNSIGNED
        if number not in self._known:
            content = self.contents.get(number)
            self._known[number] = {} if content is None else instructions_of(content)
        return self._known[number].get(instruction)

    def opcode(self, program: int | None, instruction: str) -> str:
        """What the instruction does (``all-reduce``); "" where no program in the file says it."""
        found = self.find(program, instruction)
        return "" if found is None else found.opcode

    def tell(self, rows: Rows, carried: Iterable[Carried], tables: Tables) -> None:
        """Sets kinds of rows by their programs.

        A user's rule has decided already; copies that carry out a collective are part of it.
        """
        yours = np.isin(rows.rule, [tables.rules[rule.name] for rule in kinds.yours()])
        for some, instruction, program in carried:
            opcode = self.opcode(program, instruction)
            at = some[~yours[some]]
            if not opcode or not len(at):
                continue
            if kinds.INSTRUCTIONS[0].finds(opcode):
                rows.kind[at], rows.rule[at] = Kind.COLLECTIVE, tables.rules[PROGRAM]
                rows.collective[at] = tables.collectives[kinds.collective(opcode)]
            elif kinds.JAX.finds(instruction) and len(at := at[rows.kind[at] == Kind.COLLECTIVE]):
                rows.kind[at], rows.rule[at], rows.collective[at] = Kind.COMPUTE, tables.rules[PROGRAM], -1

    def describe(self, rows: Rows, carried: Iterable[Carried], device: int, tables: Tables) -> None:
        """Sets the path of each row, how it is run, and what its collective communicates and among which devices.

        ``device`` is the number of the plane that the rows are of, −1 for several devices.
        """
        for some, instruction, program in carried:
            found = self.find(program, instruction)
            if found is None:
                continue
            if found.path:
                rows.path[some] = tables.paths[found.path]
            if found.how:
                say(rows, some if found.how is How.COMMANDS else some[rows.kind[some] == Kind.COLLECTIVE], found.how)
            if found.message is not None and len(at := some[rows.kind[some] == Kind.COLLECTIVE]):
                # Kernels of several names that carry out one call share its bytes in a way that is not told.
                if bool((rows.name[at] == rows.name[at[0]]).all()):
                    rows.size_bytes[at] = found.message.size_bytes
                if found.message.dtype:
                    rows.dtype[at] = tables.dtypes[found.message.dtype]
                if name := self._group(found.message.groups, device):
                    rows.group[at] = tables.groups[name]

    def _group(self, groups: Groups, device: int) -> str:
        """What a device's group is called, by its global ids; "" where neither they nor their number is told."""
        mine = groups.devices
        if len(mine) > 1:
            # The file of another process numbers its planes from 0 as well.
            is_here = all(self.devices.issuperset(group) for group in mine)
            mine = tuple(group for group in mine if is_here and device in group)
        return group_name(groups, mine[0] if len(mine) == 1 else ())


def say(rows: Rows, at: Ints, how: How) -> None:
    """Adds to what is told of how some rows are run."""
    rows.how[at] = np.maximum(rows.how[at], 0) | np.int8(how)


def group_name(groups: Groups, devices: tuple[int, ...]) -> str:
    if devices:
        return f"devices {', '.join(map(str, devices))}"
    return f"one of {groups.count} groups of {groups.size} devices" if groups.size and groups.count > 1 else ""


def instructions(plane: Plane, piece: Piece, rows: Ints, instruction: int) -> Iterator[Carried]:
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


def programs(space: Space, devices: Iterable[int] = ()) -> Programs:
    """What the plane ``/host:metadata`` holds; a program that is damaged is left out."""
    found: dict[int, bytes] = {}
    for plane in (plane for plane in space.planes if plane.name == "/host:metadata"):
        content, program = plane.stat_ids.get("Hlo Proto"), plane.stat_ids.get("program_id")
        for entry in plane.event_entries():
            stats = {stat.metadata_id: stat for stat in entry.value.stats if stat.metadata_id in (content, program)}
            number = plane.value(stats[program]) if program in stats else entry.key or entry.value.id
            if content in stats and isinstance(number, int):
                found[number & _UNSIGNED] = stats[content].bytes_value
    return Programs(found, frozenset(devices))
