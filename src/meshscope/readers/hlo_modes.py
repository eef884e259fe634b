"""How a compiled program runs a collective: beside other work or in its place, and for how many arrays at once.

On a GPU every collective becomes a pair of a start and a done, so that the scheduler can put work between them. A pair
between which it found none is marked as synchronous (``collective_backend_config.is_sync``, the proto
``GpuBackendConfig`` written as JSON) and runs on the stream of the computation; from the middle of 2026 on such a pair
is turned back into the plain instruction (openxla/xla pull 46463). A pair without the mark runs on a stream of its own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from meshscope.spans import How

_START = "-start"
_PLAIN = frozenset({
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
    "collective-broadcast",
})  # fmt: skip
_COMBINED = frozenset({"all-reduce", "all-gather", "reduce-scatter", "collective-broadcast"})
"""Collectives of which each operand is an array of its own; those of an all-to-all may be the parts for each peer."""

_COMMANDS = "command_buffer"
_MOST_BYTES = 1 << 20


class _Collective(msgspec.Struct, gc=False):
    is_sync: bool = False


class _Config(msgspec.Struct, gc=False):
    """Until the end of 2023 what concerns collectives stood by itself."""

    collective_backend_config: _Collective | None = None
    is_sync: bool = False


_decode = msgspec.json.Decoder(_Config).decode


def how(one: Any, opcode: str, arrays: int) -> How:
    """``opcode`` is that of the instruction, of an asynchronous wrapper that of what it wraps with ``-start``
    (``async-start`` where that is several); ``arrays`` is how many values it communicates, 0 where untold.

    A send, a receive and a collective within a fusion are left untold.
    """
    said = How(0)
    if opcode.endswith(_START):
        is_sync = _is_sync(one.backend_config)
        if is_sync is not None:
            said |= How.SYNCHRONOUS if is_sync else How.ASYNCHRONOUS
    elif opcode in _PLAIN:
        said |= How.SYNCHRONOUS
    if arrays:
        said |= How.COMBINED if arrays > 1 else How.SINGLE
    return said


def arrays_of(one: Any, kind: str) -> int:
    """How many values a collective communicates, 0 where untold; ``kind`` is its opcode without ``-start``."""
    count = len(one.operand_ids)
    return count if kind in _COMBINED or count == 1 else 0


def is_commands(opcode: str, called: list[str]) -> bool:
    """Whether an instruction runs a command buffer: ``called`` are the names of the computations that it calls."""
    return opcode == "call" and any(name.startswith(_COMMANDS) for name in called)


def names_commands(instruction: str) -> bool:
    """Whether a name that an operation says it carries out is a command buffer's, which no program has."""
    return instruction.startswith(_COMMANDS)


def _is_sync(config: bytes) -> bool | None:
    """Without a mark it is not; None where the mark cannot be read."""
    if not config.strip():
        return False
    if len(config) > _MOST_BYTES:
        return None
    try:
        found = _decode(config)
    except (msgspec.DecodeError, RecursionError):
        return None
    of = found.collective_backend_config
    return of.is_sync if of is not None else found.is_sync
