"""XLA's collectives checked: which run asynchronously, how many there are in a step, how large; and command buffers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import named
from meshscope.analysis.parts import per_window
from meshscope.intervals import difference, union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]

SMALL_BYTES = 1 << 20
"""XLA's combiners put collectives together until they are much larger than this."""

MANY = 8
"""So many collectives of one kind in a step, and most of them small, could be combined."""

_START = re.compile(r"^%?[a-z-]+-start[.\d]*(\s|=|$)")
_HLO = re.compile(r"^%?(all|reduce|collective|ragged|send|recv)[a-z-]*[.\d]*(\s|=|$)")
_COMMANDS = re.compile(r"command_?buffer|cuda_?graph|hip_?graph", re.IGNORECASE)
_ASYNC_LANE = "Async XLA Ops"

_NOT_ON_CPU = "XLA's CPU runtime has no asynchronous collectives: none is expected"
_BY_KERNEL = "the trace names kernels, not operations"


@dataclass(frozen=True, eq=False)
class Piece:
    """One kind of collective in one window, columns (k,); ``asynchronous`` is None where names do not tell.

    ``exposed_ns`` is when any of them runs and nothing is computed: asynchronous ones run side by side.
    """

    busy_ns: Ints
    exposed_ns: int
    size_bytes: Ints
    asynchronous: int | None


@dataclass(frozen=True)
class XlaCollective:
    """One kind over all devices. ``per_step`` is for one device, NaN where no step is complete. ``busy_ns`` adds up the
    calls, ``exposed_ns`` the devices, on each of which calls that run side by side count once.

    ``asynchronous`` of ``count`` have a start and a done of their own, None where that cannot be told. ``small`` of
    ``sized`` whose size is known are under :data:`SMALL_BYTES`; ``is_scattered`` says that there are many in a step
    and most are small.
    """

    name: str
    count: int
    per_step: float
    asynchronous: int | None
    busy_ns: int
    exposed_ns: int
    median_ns: float
    sized: int
    small: int
    is_scattered: bool


@dataclass(frozen=True)
class Xla:
    """``commands`` counts operations that are whole command buffers (graphs), of ``works`` pieces of device work."""

    collectives: tuple[XlaCollective, ...]
    commands: int
    works: int


@per_window
def measure(window: Window) -> dict[str, Piece]:
    spans = window.spans
    rows = np.flatnonzero(spans.kind == Kind.COLLECTIVE)
    compute = spans.busy(Kind.COMPUTE)
    is_start = named(spans, _START.match)[rows] | _on_async_lane(window)[rows]
    is_operation = named(spans, _HLO.match)[rows]
    tells = window.device_kind != "cpu" and bool(is_operation.all())
    found = {}
    for code in np.unique(spans.collective[rows]).tolist():
        mine = spans.collective[rows] == code
        row = rows[mine]
        start_ns, end_ns = spans.start_ns[row], spans.end_ns[row]
        found[spans.collectives[code] if code >= 0 else ""] = Piece(
            busy_ns=end_ns - start_ns,
            exposed_ns=difference(union(start_ns, end_ns), compute).total_ns,
            size_bytes=spans.size_bytes[row],
            asynchronous=int(is_start[mine].sum()) if tells else None,
        )
    return found


def _on_async_lane(window: Window) -> npt.NDArray[np.bool_]:
    spans = window.spans
    is_it = np.array([name == _ASYNC_LANE for name in (*spans.lanes, "")], dtype=bool)
    rows: npt.NDArray[np.bool_] = is_it[spans.lane]
    return rows


def xla(run: Run) -> Xla | None:
    """None where nothing was read of XLA."""
    windows = [window for window in run.windows if window.framework == "jax" and window.device_kind != "none"]
    if not windows:
        return None
    pieces: dict[str, list[Piece]] = {}
    for window in windows:
        for name, piece in measure(window).items():
            pieces.setdefault(name, []).append(piece)
    steps = sum(len(window.steps) for window in windows)
    found = [_collective(name, some, steps) for name, some in pieces.items()]
    return Xla(
        collectives=tuple(sorted(found, key=lambda one: (-one.exposed_ns, one.name))),
        commands=sum(int(named(window.spans, _COMMANDS.search).sum()) for window in windows),
        works=sum(window.counts.device for window in windows),
    )


def _collective(name: str, some: Sequence[Piece], steps: int) -> XlaCollective:
    busy_ns, sizes = (np.concatenate([getattr(one, column) for one in some]) for column in ("busy_ns", "size_bytes"))
    told = [one.asynchronous for one in some if one.asynchronous is not None]
    sized, small = int((sizes >= 0).sum()), int(((sizes >= 0) & (sizes < SMALL_BYTES)).sum())
    per_step = ratio(len(busy_ns), steps)
    return XlaCollective(
        name=name,
        count=len(busy_ns),
        per_step=per_step,
        asynchronous=sum(told) if len(told) == len(some) else None,
        busy_ns=int(busy_ns.sum()),
        exposed_ns=sum(one.exposed_ns for one in some),
        median_ns=float(np.median(busy_ns)),
        sized=sized,
        small=small,
        is_scattered=per_step >= MANY and sized == len(sizes) and small > sized / 2,
    )


def doubts(run: Run) -> tuple[tuple[str, str], ...]:
    """What of XLA's collectives cannot be told."""
    said: dict[tuple[str, str], None] = {}
    for window in run.windows:
        if window.framework != "jax" or not measure(window):
            continue
        pieces = measure(window).values()
        if window.device_kind == "cpu":
            said["asynchronous", _NOT_ON_CPU] = None
        elif any(one.asynchronous is None for one in pieces):
            said["asynchronous", _BY_KERNEL] = None
    return tuple(said)
