"""What the instructions of one compiled program do: opcode, the code that they come from, and what they communicate.

Sizes are those of nccl-tests (see :mod:`meshscope.analysis.bandwidth`): what an all-gather leaves on a device, and
what any other collective takes from one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from meshscope.readers.hlo_groups import NO_GROUPS, Groups, assigned, groups_of
from meshscope.readers.hlo_modes import arrays_of, how, is_commands
from meshscope.readers.hlo_shapes import UNKNOWN, dtype, size_bytes
from meshscope.readers.xplane_messages import message
from meshscope.spans import How

_COLLECTIVES = frozenset({
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
    "collective-broadcast", "send", "recv",
})  # fmt: skip
_PAIRED = frozenset({"collective-permute", "send", "recv"})
"""Collectives that name pairs of devices, or none, instead of groups."""

_OF_RESULT = frozenset({"all-gather", "recv"})
_AROUND = frozenset({"async-start", "async-update", "async-done", "fusion"})
_START, _DONE = "-start", "-done"
_NOTHING_TOLD = How(0)


@dataclass(frozen=True, slots=True)
class Message:
    """What one call of a collective communicates: −1 and "" where the program does not tell."""

    size_bytes: int = UNKNOWN
    dtype: str = ""
    groups: Groups = NO_GROUPS


@dataclass(frozen=True, slots=True)
class Instruction:
    """``opcode`` of an asynchronous wrapper is that of what it wraps (``reduce-scatter-start``).

    ``path`` is where the code stands: JAX's scopes and transformations (``jit(step)/jvp(Net)/Dense_0/dot_general``).
    ``message`` is None for what is no collective, and for the done of one. ``how`` is empty where nothing is told, and
    for a command buffer says no more than that.
    """

    opcode: str
    path: str
    message: Message | None = None
    how: How = _NOTHING_TOLD


def instructions_of(content: bytes) -> dict[str, Instruction]:
    """By name, from a serialized ``HloProto``; empty for one that is damaged."""
    try:
        module = message("Program").FromString(content).module
    except DecodeError:
        return {}
    return _Module(module).instructions()


class _Module:
    def __init__(self, module: Any) -> None:
        self._module = module
        self._assignment = assigned(module)
        self._computations = {one.id: one for one in module.computations}
        self._numbered: dict[int, dict[int, Any]] = {}
        self._wrappers: dict[int, list[Any]] = defaultdict(list)
        for one in (one for computation in module.computations for one in computation.instructions):
            if one.opcode == b"async-start":
                for number in one.called_computation_ids:
                    self._wrappers[number].append(one)

    def instructions(self) -> dict[str, Instruction]:
        return {
            _text(one.name): self._told(one, computation)
            for computation in self._module.computations
            for one in computation.instructions
        }

    def _told(self, one: Any, computation: Any) -> Instruction:
        opcode, path = _text(one.opcode), _text(one.metadata.op_name)
        if opcode in _AROUND:
            return self._around(one, opcode, path, computation)
        kind = opcode.removesuffix(_START)
        if kind in _COLLECTIVES:
            return Instruction(opcode, path, self._message(one, kind, computation), self._how(one, computation))
        called = [self._computations[number] for number in one.called_computation_ids if number in self._computations]
        is_graph = is_commands(opcode, [_text(its.name) for its in called])
        return Instruction(opcode, path, how=How.COMMANDS if is_graph else _NOTHING_TOLD)

    def _how(self, one: Any, computation: Any) -> How:
        """A kernel may name the collective that a wrapper wraps: it runs as the wrapper does."""
        opcode = _text(one.opcode)
        arrays = arrays_of(one, opcode.removesuffix(_START))
        wrappers = self._wrappers.get(computation.id)
        if wrappers is None:
            return how(one, opcode, arrays)
        said = {how(start, _text(start.opcode), arrays) for start in wrappers}
        return said.pop() if len(said) == 1 else _NOTHING_TOLD

    def _around(self, one: Any, opcode: str, path: str, computation: Any) -> Instruction:
        """An instruction that holds others: what it communicates is what the only collective in it does."""
        inside = list(self._inside(one, computation))
        kinds = [_text(inner.opcode) for inner, _ in inside]
        if opcode.startswith("async-") and len(kinds) == 1:
            opcode = opcode.replace("async", kinds[0], 1)
        if opcode.endswith(_DONE) or not inside:
            return Instruction(opcode, path)
        said = how(one, opcode, sum(arrays_of(inner, _text(inner.opcode)) for inner, _ in inside))
        if len(inside) > 1:
            return Instruction(opcode, path, Message(), said)
        inner, its = inside[0]
        return Instruction(opcode, path, self._message(inner, kinds[0], its), said)

    def _inside(self, one: Any, computation: Any) -> Iterator[tuple[Any, Any]]:
        """The collectives that an instruction holds; those of a done are its start's."""
        called = list(one.called_computation_ids)
        if not called and one.operand_ids and one.opcode != b"fusion":
            start = self._by_id(computation).get(one.operand_ids[0])
            called = list(start.called_computation_ids) if start is not None else []
        for number in called:
            its = self._computations.get(number)
            for inner in its.instructions if its is not None else ():
                if _text(inner.opcode) in _COLLECTIVES:
                    yield inner, its

    def _message(self, one: Any, kind: str, computation: Any) -> Message:
        """``kind`` is the opcode without its ``-start``."""
        groups = NO_GROUPS if kind in _PAIRED else groups_of(one, kind, self._assignment)
        if kind in _OF_RESULT:
            shapes = [_result(one, kind)]
        else:
            known = self._by_id(computation)
            shapes = [known[number].shape if number in known else None for number in one.operand_ids]
        if kind == "ragged-all-to-all" or (kind == "collective-permute" and len(shapes) != 1):
            # How much is sent is told at run time only; further operands of a permute say where within a buffer.
            return Message(groups=groups)
        sizes = [UNKNOWN if shape is None else size_bytes(shape) for shape in shapes]
        if not sizes or UNKNOWN in sizes:
            return Message(groups=groups)
        return Message(sum(sizes), dtype(*shapes), groups)

    def _by_id(self, computation: Any) -> dict[int, Any]:
        if computation.id not in self._numbered:
            self._numbered[computation.id] = {one.id: one for one in computation.instructions}
        return self._numbered[computation.id]


def _result(one: Any, kind: str) -> Any:
    """The shape of what is received: a start also lists what it takes, and a recv what the runtime keeps with it."""
    parts = list(one.shape.tuple_shapes)
    if kind == "recv":
        return parts[0] if parts else None
    if _text(one.opcode).endswith(_START):
        return parts[1] if len(parts) > 1 else None
    return one.shape


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
