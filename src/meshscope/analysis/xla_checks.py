"""XLA's collectives checked: which run asynchronously, how many there are in a step, how large; and command buffers."""

from __future__ import annotations

import re
from collections import Counter
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

FEW = 3

_START = re.compile(r"^%?[a-z-]+-start[.\d]*(\s|=|$)")
_HLO = re.compile(r"^%?(all|reduce|collective|ragged|send|recv)[a-z-]*[.\d]*(\s|=|$)")
_COMMANDS = re.compile(r"command_?buffer|cuda_?graph|hip_?graph", re.IGNORECASE)
_ASYNC_LANE = "Async XLA Ops"

_NOT_ON_CPU = "XLA's CPU runtime has no asynchronous collectives: none is expected"
_BY_KERNEL = "the trace names kernels, not operations"


@dataclass(frozen=True, eq=False)
class Piece:
    """One kind of collective in one window, columns (k,); ``asynchronous`` is None where names do not tell.

    ``alone_ns`` is when each of them runs and nothing is computed, ``exposed_ns`` when any of them does: asynchronous
    ones run side by side.
    """

    name: tuple[str, ...]
    busy_ns: Ints
    alone_ns: Ints
    exposed_ns: int
    size_bytes: Ints
    asynchronous: int | None


@dataclass(frozen=True)
class Called:
    """One instruction, or the kernel that carries it out: ``size_bytes`` is None where it is untold or differs."""

    name: str
    count: int
    exposed_ns: int
    size_bytes: int | None


@dataclass(frozen=True)
class XlaCollective:
    """One kind over all devices. ``per_step`` is for one device, NaN where no step is complete. ``busy_ns`` adds up the
    calls, ``exposed_ns`` the devices, on each of which calls that run side by side count once.

    ``asynchronous`` of ``count`` have a start and a done of their own, None where that cannot be told. ``small`` of
    ``sized`` whose size is known are under :data:`SMALL_BYTES`; ``is_scattered`` says that there are many in a step
    and most are small, where the compiler could have combined them. ``sized_bytes`` is what those of known size move
    together, on all devices. ``longest`` are the :data:`FEW` with the most exposed time: what to look for in the
    program.
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
    sized_bytes: int = 0
    longest: tuple[Called, ...] = ()


@dataclass(frozen=True)
class Xla:
    """``commands`` counts operations that are whole command buffers (graphs), of ``works`` pieces of device work.

    ``command_names`` are the :data:`FEW` most frequent of their names.
    """

    collectives: tuple[XlaCollective, ...]
    commands: int
    works: int
    command_names: tuple[str, ...] = ()


@per_window
def measure(window: Window) -> dict[str, Piece]:
    spans = window.spans
    rows = np.flatnonzero(spans.kind == Kind.COLLECTIVE)
    compute = spans.busy(Kind.COMPUTE)
    is_start = named(spans, _START.match)[rows] | _on_async_lane(window)[rows]
    is_operation = named(spans, _HLO.match)[rows]
    tells = window.device_kind != "cpu" and bool(is_operation.all())
    names = [_instruction(name) for name in (*spans.names, "")]  # −1, no name, finds the last
    found = {}
    for code in np.unique(spans.collective[rows]).tolist():
        mine = spans.collective[rows] == code
        row = rows[mine]
        start_ns, end_ns = spans.start_ns[row], spans.end_ns[row]
        alone = [difference(union(start_ns[at : at + 1], end_ns[at : at + 1]), compute) for at in range(len(row))]
        found[spans.collectives[code] if code >= 0 else ""] = Piece(
            name=tuple(names[one] for one in spans.name[row].tolist()),
            busy_ns=end_ns - start_ns,
            alone_ns=np.array([one.total_ns for one in alone], dtype=np.int64),
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


def is_combined(run: Run, name: str) -> bool:
    """Whether the compiler puts small collectives of one kind together.

    XLA's CPU compiler does so with all-reduces only: of a sharded model it leaves an all-gather for each parameter.
    """
    on_cpu = any(window.framework == "jax" and window.device_kind == "cpu" for window in run.windows)
    return name == "all_reduce" or not on_cpu


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
    found = [_collective(name, some, steps, can_combine=is_combined(run, name)) for name, some in pieces.items()]
    commands = sum((_commands(window) for window in windows), Counter[str]())
    return Xla(
        collectives=tuple(sorted(found, key=lambda one: (-one.exposed_ns, one.name))),
        commands=commands.total(),
        works=sum(window.counts.device for window in windows),
        command_names=tuple(name for name, _ in commands.most_common(FEW)),
    )


def _commands(window: Window) -> Counter[str]:
    spans = window.spans
    rows = np.flatnonzero(named(spans, _COMMANDS.search))
    return Counter(spans.name_of(row) for row in rows.tolist())


def _instruction(name: str) -> str:
    """Without the text that a TPU trace has after it."""
    return name.partition(" = ")[0].removeprefix("%")


def _longest(some: Sequence[Piece]) -> tuple[Called, ...]:
    rows: dict[str, list[tuple[int, int]]] = {}
    for one in some:
        for name, exposed_ns, size in zip(one.name, one.alone_ns.tolist(), one.size_bytes.tolist(), strict=True):
            rows.setdefault(name, []).append((exposed_ns, size))
    found = [_called(name, calls) for name, calls in rows.items()]
    return tuple(sorted(found, key=lambda one: (-one.exposed_ns, one.name))[:FEW])


def _called(name: str, calls: Sequence[tuple[int, int]]) -> Called:
    sizes = {size for _, size in calls}
    size = sizes.pop() if len(sizes) == 1 else -1
    return Called(name, len(calls), sum(exposed_ns for exposed_ns, _ in calls), size if size >= 0 else None)


def _collective(name: str, some: Sequence[Piece], steps: int, *, can_combine: bool) -> XlaCollective:
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
        is_scattered=can_combine and per_step >= MANY and sized == len(sizes) and small > sized / 2,
        sized_bytes=int(sizes[sizes >= 0].sum()),
        longest=_longest(some),
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
