"""Every collective apart: by name, process group and size, over everything that was profiled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.parts import per_window
from meshscope.intervals import Intervals
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window

Key = tuple[str, str, int]


@dataclass(frozen=True)
class CollectiveTotal:
    """One collective over all windows, summed over ``ranks``. ``hidden + exposed = busy``.

    ``size_bytes`` is that of one of the ``count`` calls; None where untold, as are ``wait_ns`` and ``transfer_ns``.
    """

    name: str
    group: str
    size_bytes: int | None
    count: int
    ranks: tuple[int, ...]
    busy_ns: int
    hidden_ns: int
    exposed_ns: int
    wait_ns: int | None
    transfer_ns: int | None


@dataclass(frozen=True)
class Piece:
    """One collective in one window; ``wait_ns`` is None where the trace tells no waiting apart."""

    count: int
    busy_ns: int
    hidden_ns: int
    wait_ns: int | None


@dataclass(frozen=True)
class Part:
    rank: int
    pieces: dict[Key, Piece]


@per_window
def measure(window: Window) -> Part:
    """The window's collectives by (name, group, size); −1 stands for a size that is not told."""
    spans = window.spans
    comm = spans.of_kind(Kind.COLLECTIVE)
    waits, compute = spans.of_kind(Kind.WAIT), spans.busy(Kind.COMPUTE)
    tells_waits = bool((waits.collective >= 0).any())
    columns = np.stack((comm.collective, comm.group, comm.size_bytes), axis=1)
    keys, number = np.unique(columns, axis=0, return_inverse=True)
    order = np.argsort(number.reshape(-1), kind="stable")
    bounds = np.searchsorted(number.reshape(-1)[order], np.arange(len(keys) + 1))
    pieces = {}
    for row, (collective, group, size_bytes) in enumerate(keys.tolist()):
        mine = comm.where(order[bounds[row] : bounds[row + 1]])
        name = comm.collectives[collective] if collective >= 0 else ""
        key = (name, comm.groups[group] if group >= 0 else "", size_bytes)
        pieces[key] = _piece(mine, waits.busy() if tells_waits else None, compute)
    return Part(window.rank, pieces)


def _piece(mine: SpanTable, waits: Intervals | None, compute: Intervals) -> Piece:
    busy = mine.busy()
    wait_ns = None if waits is None else (waits & busy).total_ns
    return Piece(len(mine), busy.total_ns, (busy & compute).total_ns, wait_ns)


def combine(parts: Iterable[Part]) -> tuple[CollectiveTotal, ...]:
    found: dict[Key, list[tuple[int, Piece]]] = {}
    for part in parts:
        for key, piece in part.pieces.items():
            found.setdefault(key, []).append((part.rank, piece))
    totals = [_total(key, pieces) for key, pieces in found.items()]
    return tuple(sorted(totals, key=lambda total: (-total.busy_ns, total.name, total.group, total.size_bytes or -1)))


def _total(key: Key, pieces: list[tuple[int, Piece]]) -> CollectiveTotal:
    name, group, size_bytes = key
    busy_ns = sum(piece.busy_ns for _, piece in pieces)
    hidden_ns = sum(piece.hidden_ns for _, piece in pieces)
    waits = [piece.wait_ns for _, piece in pieces]
    wait_ns = None if None in waits else sum(wait for wait in waits if wait is not None)
    return CollectiveTotal(
        name=name,
        group=group,
        size_bytes=size_bytes if size_bytes >= 0 else None,
        count=sum(piece.count for _, piece in pieces),
        ranks=tuple(sorted({rank for rank, _ in pieces})),
        busy_ns=busy_ns,
        hidden_ns=hidden_ns,
        exposed_ns=busy_ns - hidden_ns,
        wait_ns=wait_ns,
        transfer_ns=None if wait_ns is None else busy_ns - wait_ns,
    )


def collectives(run: Run) -> tuple[CollectiveTotal, ...]:
    """By busy time, largest first."""
    return combine(measure(window) for window in run.windows if window.device_kind != "none")
