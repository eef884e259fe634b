"""XLA's collectives checked: which run asynchronously, how many there are in a step, how large, which the compiler has
combined; and command buffers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import named
from meshscope.analysis.parts import per_window
from meshscope.analysis.xla_modes import ASYNC, SYNC, UNTOLD, in_commands, modes, why_untold
from meshscope.intervals import difference, union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]
Modes = npt.NDArray[np.int8]

SMALL_BYTES = 1 << 20
"""XLA's combiners put collectives together until they are much larger than this."""

MANY = 8
"""So many collectives of one kind in a step, and most of them small, could be combined."""

FEW = 3

_COMMANDS = re.compile(r"command_?buffer|cuda_?graph|hip_?graph", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Piece:
    """One kind of collective in one window, columns (k,); ``mode``, ``combined``, ``in_commands`` and ``by`` are those
    of :class:`meshscope.analysis.xla_modes.Modes`.

    ``alone_ns`` is when each of them runs and nothing is computed, ``exposed_ns`` when any of them does: asynchronous
    ones run side by side.
    """

    name: tuple[str, ...]
    busy_ns: Ints
    alone_ns: Ints
    exposed_ns: int
    size_bytes: Ints
    mode: Modes
    combined: Modes
    in_commands: npt.NDArray[np.bool_]
    by: tuple[str, ...]


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

    ``asynchronous`` of ``count`` run beside other work and ``synchronous`` in its place, None where that cannot be told
    of ``untold`` of them; ``told_by`` says what told it. ``combined`` carry several arrays, None where no program tells
    of all; ``in_commands`` ran in command buffers. ``small`` of ``sized`` whose size is known are under
    :data:`SMALL_BYTES`; ``is_scattered`` says that there are many in a step and most are small, where the compiler
    could have combined them. ``sized_bytes`` is what those of known size move together, on all devices. ``longest``
    are the :data:`FEW` with the most exposed time: what to look for in the program.
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
    synchronous: int | None = None
    untold: int = 0
    told_by: tuple[str, ...] = ()
    combined: int | None = None
    in_commands: int = 0


@dataclass(frozen=True)
class Xla:
    """``commands`` counts operations that are whole command buffers (graphs), of ``works`` pieces of device work.

    ``command_names`` are the :data:`FEW` most frequent of their names. ``in_commands`` counts the pieces of device work
    that command buffers consist of, where the trace shows each of them.
    """

    collectives: tuple[XlaCollective, ...]
    commands: int
    works: int
    command_names: tuple[str, ...] = ()
    in_commands: int = 0


@per_window
def measure(window: Window) -> dict[str, Piece]:
    spans, told = window.spans, modes(window)
    rows, compute = told.row, spans.busy(Kind.COMPUTE)
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
            mode=told.mode[mine],
            combined=told.combined[mine],
            in_commands=told.in_commands[mine],
            by=told.by,
        )
    return found


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
        in_commands=sum(int(in_commands(window.spans).sum()) for window in windows),
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
    busy_ns, sizes, mode, arrays, grouped = (
        np.concatenate([getattr(one, column) for one in some])
        for column in ("busy_ns", "size_bytes", "mode", "combined", "in_commands")
    )
    untold = int((mode == UNTOLD).sum())
    sized, small = int((sizes >= 0).sum()), int(((sizes >= 0) & (sizes < SMALL_BYTES)).sum())
    per_step = ratio(len(busy_ns), steps)
    return XlaCollective(
        name=name,
        count=len(busy_ns),
        per_step=per_step,
        asynchronous=None if untold else int((mode == ASYNC).sum()),
        busy_ns=int(busy_ns.sum()),
        exposed_ns=sum(one.exposed_ns for one in some),
        median_ns=float(np.median(busy_ns)),
        sized=sized,
        small=small,
        is_scattered=can_combine and per_step >= MANY and sized == len(sizes) and small > sized / 2,
        sized_bytes=int(sizes[sizes >= 0].sum()),
        longest=_longest(some),
        synchronous=None if untold else int((mode == SYNC).sum()),
        untold=untold,
        told_by=tuple(dict.fromkeys(ground for one in some for ground in one.by)),
        combined=None if (arrays == UNTOLD).any() else int(arrays.sum()),
        in_commands=int(grouped.sum()),
    )


def doubts(run: Run) -> tuple[tuple[str, str], ...]:
    """What of XLA's collectives cannot be told."""
    whys = (why_untold(window) for window in run.windows if window.framework == "jax" and window.device_kind != "none")
    return tuple(("asynchronous", why) for why in dict.fromkeys(whys) if why)
