"""What the threads of a torch rank that launch work were doing, by the names of their spans."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.analysis.parts import per_window
from meshscope.intervals import EMPTY, Intervals, difference, intersection, union
from meshscope.spans import Kind, SpanTable, Window

Flags = npt.NDArray[np.bool_]

DATA, SYNC, MEMORY, LAUNCHING, OPTIMIZER, OPERATORS, PYTHON = (
    "data", "sync", "allocation", "launch", "optimizer", "operators", "python",
)  # fmt: skip

_NAMED = (
    (DATA, re.compile(r"^enumerate\(DataLoader\)")),
    # A blocking copy is a synchronization as well; ``item()`` is both, in an operator.
    (
        SYNC,
        re.compile(
            r"^(cuda|hip)(Stream|Device|Event)Synchronize|^(cuda|hip)Memcpy(WithStream)?$"
            r"|^cu(Stream|Ctx|Event)Synchronize|^aten::(item|_local_scalar_dense)$"
        ),
    ),
    (
        MEMORY,
        re.compile(r"^(cuda|hip)(Malloc|Free|HostAlloc|HostFree|MemCreate|MemMap|MemUnmap)|^cuMem(Create|Map|Un)"),
    ),
)
_OPTIMIZER = re.compile(r"^Optimizer\.(step|zero_grad)#")

ACTIVITIES = (DATA, SYNC, MEMORY, LAUNCHING, OPTIMIZER, OPERATORS, PYTHON)
"""In the order in which a moment that is several of them is charged; in ``python``, none of the others was recorded."""

Activity = dict[str, Intervals]


def named(spans: SpanTable, finds: Callable[[str], object]) -> Flags:
    """Which rows have a name for which ``finds`` is true, asked once for each name; shape (n,)."""
    is_it = np.array([bool(finds(name)) for name in spans.names] + [False], dtype=bool)
    rows: Flags = is_it[spans.name]
    return rows


def host_named(spans: SpanTable, finds: Callable[[str], object]) -> Flags:
    """The same among the host's spans only: an annotation is repeated on the device's side of a trace."""
    rows: Flags = named(spans, finds) & (spans.kind == Kind.HOST)
    return rows


def cites(spans: SpanTable, rule: str) -> Flags:
    """Which rows were told by a rule, shape (n,)."""
    rows: Flags = spans.rule == (spans.rules.index(rule) if rule in spans.rules else -2)
    return rows


@per_window
def threads(window: Window) -> dict[int, Activity]:
    """Lane by lane, when each activity was recorded; activities do not overlap. Lanes that launch or compute only."""
    spans = window.spans
    mine = np.unique(spans.lane[_drives(window)])
    masks = _masks(spans)
    return {int(lane): _activity(spans, spans.lane == lane, masks) for lane in mine.tolist()}


def _drives(window: Window) -> Flags:
    wanted = Kind.LAUNCH if window.device_kind == "gpu" else Kind.COMPUTE
    rows: Flags = window.spans.kind == wanted
    return rows


def _masks(spans: SpanTable) -> list[tuple[str, Flags]]:
    is_host = spans.kind == Kind.HOST
    is_said = is_host & (cites(spans, kinds.ANNOTATION) | cites(spans, kinds.FRAME))
    # An annotation or a frame says who waits, not that something is done; but for these few.
    masks = [(name, is_host & named(spans, pattern.search)) for name, pattern in _NAMED]
    masks.append((LAUNCHING, spans.kind == Kind.LAUNCH))
    masks.append((OPTIMIZER, is_host & named(spans, _OPTIMIZER.search)))
    masks.append((OPERATORS, is_host & ~is_said))
    return masks


def _activity(spans: SpanTable, here: Flags, masks: Iterable[tuple[str, Flags]]) -> Activity:
    taken, found = EMPTY, {}
    for name, mask in masks:
        rows = mask & here
        covered = union(spans.start_ns[rows], spans.end_ns[rows])
        found[name] = difference(covered, taken)
        taken = taken | covered
    return found


def charged(idle: Intervals, thread: int, known: dict[int, Activity]) -> Activity:
    """The time of ``idle`` by what the host did: the thread itself first, then the others that drive the device.

    The parts add up to ``idle`` exactly: what nothing was recorded in is ``python``.
    """
    found = dict.fromkeys(ACTIVITIES, EMPTY)
    rest = idle
    for lane in (thread, *(lane for lane in known if lane != thread)):
        for name, when in known.get(lane, {}).items():
            found[name] = found[name] | intersection(rest, when)
            rest = difference(rest, when)
    return found | {PYTHON: found[PYTHON] | rest}
