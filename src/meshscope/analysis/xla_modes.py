"""Whether each of XLA's collectives ran asynchronously, and what tells it.

The compiled program tells, where it lies in the trace; on a TPU the name of an operation tells too. Else, on a GPU, the
streams do: XLA runs a synchronous collective on the stream that computes, and an asynchronous one on another on which
nothing is computed. Where kernels ran in command buffers the streams do not, since a graph has its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import named
from meshscope.analysis.parts import per_window
from meshscope.spans import How, Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ASYNC, SYNC, UNTOLD = 1, 0, -1

BY_PROGRAM, BY_NAMES, BY_STREAMS = "the compiled program", "the names of operations", "the streams that they ran on"

_MAIN_FRAC = 0.5
"""The stream that computes has at least this share of the device's computing: a few kernels beside the collectives of
another tell nothing."""

_START = re.compile(r"^%?[a-z-]+-start[.\d]*(\s|=|$)")
_HLO = re.compile(r"^%?(all|reduce|collective|ragged|send|recv)[a-z-]*[.\d]*(\s|=|$)")
_TEXT = re.compile(r"^%?[\w.-]+ = [^%]*?[ )](all-|reduce-scatter|collective-|ragged-)[a-z-]*\(")
_STARTS = re.compile(r"^%?[\w.-]+ = [^%]*?[ )](all-|reduce-scatter|collective-|ragged-)[a-z-]*-start\(")
_ASYNC_LANE = "Async XLA Ops"

_NOT_ON_CPU = "XLA's CPU runtime has no asynchronous collectives: none is expected"
_COMMANDS = "kernels ran in command buffers, which name none of the operations that they carry out"
_BY_KERNEL = "the trace names kernels, no program in it says, and the streams that they ran on do not tell"


@dataclass(frozen=True, eq=False)
class Modes:
    """k collectives of one window as columns of shape (k,), by ``row`` of its spans.

    ``mode`` is :data:`ASYNC`, :data:`SYNC` or :data:`UNTOLD`, ``combined`` 1 for what carries several arrays, 0 for one
    and −1 where untold. ``in_commands`` tells which ran in a command buffer. ``by`` are the grounds, none where
    nothing is told.
    """

    row: Ints
    mode: npt.NDArray[np.int8]
    combined: npt.NDArray[np.int8]
    in_commands: Flags
    by: tuple[str, ...]


@per_window
def modes(window: Window) -> Modes:
    spans = window.spans
    row = np.flatnonzero(spans.kind == Kind.COLLECTIVE)
    how = np.maximum(spans.how[row], 0)
    combined = np.full(len(row), UNTOLD, dtype=np.int8)
    combined[how & How.SINGLE != 0] = 0
    combined[how & How.COMBINED != 0] = 1
    mode = np.full(len(row), UNTOLD, dtype=np.int8)
    by = []
    if window.framework == "jax" and window.device_kind in ("gpu", "tpu"):
        for ground, told in _told(window, row, how):
            new = (mode == UNTOLD) & (told != UNTOLD)
            mode[new] = told[new]
            by += [ground] if new.any() else []
    return Modes(row, mode, combined, how & How.COMMANDS != 0, tuple(by))


def in_commands(spans: SpanTable) -> Flags:
    """Which spans ran in a command buffer, shape (n,)."""
    flags: Flags = (spans.how >= 0) & (spans.how & How.COMMANDS != 0)
    return flags


def _told(window: Window, row: Ints, how: npt.NDArray[np.int8]) -> list[tuple[str, npt.NDArray[np.int8]]]:
    by_program = np.full(len(row), UNTOLD, dtype=np.int8)
    by_program[how & How.ASYNCHRONOUS != 0] = ASYNC
    by_program[how & How.SYNCHRONOUS != 0] = SYNC
    if window.device_kind == "tpu":
        return [(BY_NAMES, _by_lane(window, row)), (BY_PROGRAM, by_program), (BY_NAMES, _by_name(window, row))]
    return [(BY_PROGRAM, by_program), (BY_STREAMS, _by_stream(window, row))]


def _by_lane(window: Window, row: Ints) -> npt.NDArray[np.int8]:
    """What stands on the line of asynchronous operations is one, whatever it is called."""
    spans = window.spans
    is_it = np.array([name == _ASYNC_LANE for name in (*spans.lanes, "")], dtype=bool)
    return np.where(is_it[spans.lane[row]], ASYNC, UNTOLD).astype(np.int8)


def _by_name(window: Window, row: Ints) -> npt.NDArray[np.int8]:
    spans = window.spans
    is_start = (named(spans, _START.match) | named(spans, _STARTS.match))[row]
    is_plain = (named(spans, _HLO.match) | named(spans, _TEXT.match))[row]
    return np.where(is_start, ASYNC, np.where(is_plain, SYNC, UNTOLD)).astype(np.int8)


def _by_stream(window: Window, row: Ints) -> npt.NDArray[np.int8]:
    spans = window.spans
    untold = np.full(len(row), UNTOLD, dtype=np.int8)
    computing = (spans.kind == Kind.COMPUTE) & (spans.lane >= 0)
    if in_commands(spans).any() or not computing.any():
        return untold
    length_ns = np.where(computing, spans.end_ns - spans.start_ns, 0)
    of_lane = np.zeros(len(spans.lanes) + 1, dtype=np.int64)  # −1, no lane, finds the last
    np.add.at(of_lane, spans.lane, length_ns)
    has_any = np.zeros(len(of_lane), dtype=bool)
    has_any[spans.lane[computing]] = True
    computes = of_lane >= _MAIN_FRAC * of_lane.sum()
    computes[-1], has_any[-1] = False, True
    lane = spans.lane[row]
    return np.where(computes[lane], SYNC, np.where(has_any[lane], UNTOLD, ASYNC)).astype(np.int8)


def why_untold(window: Window) -> str:
    """Why some of a window's collectives cannot be told; "" where all are."""
    found = modes(window)
    if window.device_kind == "cpu":
        return _NOT_ON_CPU if len(found.row) else ""
    if not (found.mode == UNTOLD).any():
        return ""
    return _COMMANDS if in_commands(window.spans).any() else _BY_KERNEL
