"""Every collective apart: by name, process group and size, over everything that was profiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from meshscope.analysis.bandwidth import algorithm_bytes_per_s, bus_factor
from meshscope.analysis.calls import devices_of
from meshscope.analysis.link_sharing import beside_ns_of
from meshscope.analysis.parts import per_pair, per_window
from meshscope.analysis.waiting import WindowWaits, charges, waiting
from meshscope.intervals import Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]
Key = tuple[str, str, int]

_MAY_DIFFER = frozenset({"all_to_all"})
"""Collectives in which one rank may move more than another."""

MOST_SIZES = 32
"""More sizes than this of one collective in one group are put together in classes, each of one power of two."""


@dataclass(frozen=True)
class CollectiveTotal:
    """One collective over all windows, summed over ``ranks``. ``hidden + exposed = busy``.

    ``size_bytes`` is that of one of the ``count`` calls (the mean of a class of sizes, whose bounds are
    ``size_class``); None where untold, as are ``wait_ns`` and ``transfer_ns``. Those two, the bandwidths, ``late_ns``
    and ``last`` are over the ``matched`` calls that have a counterpart on every rank, and ``wait + transfer`` is the
    time that these take. ``late_ns`` is what the others waited for each rank, ``last`` how often it came last;
    ``group_size`` is how many ranks take part, 0 where unknown.

    Calls of a row that run side by side count once in its time, so that the bandwidths are those of all of them
    together. For ``beside_ns`` of ``transfer_ns`` a collective of another row transfers on the same device: then the
    links carry more than this row's bandwidths say. ``is_uneven``: the ranks move different amounts in one call, of
    which nccl-tests has no bus bandwidth.
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
    matched: int = 0
    group_size: int = 0
    algbw_bytes_per_s: float | None = None
    busbw_bytes_per_s: float | None = None
    late_ns: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    size_class: tuple[int, int] | None = None
    beside_ns: int | None = None
    is_uneven: bool = False


@dataclass(frozen=True)
class Piece:
    """``count`` calls of one collective in one window, on the ``row`` of its spans.

    ``wait_ns`` is what the trace itself records of waiting, None where it tells none apart. ``bytes`` is the sum over
    the calls, −1 where one is untold.
    """

    count: int
    busy_ns: int
    hidden_ns: int
    wait_ns: int | None
    bytes: int
    row: Ints = field(compare=False, repr=False)


@dataclass(frozen=True)
class Part:
    rank: int
    pieces: dict[Key, Piece]


@per_window
def measure(window: Window) -> Part:
    """The window's collectives by (name, group, size); −1 stands for a size that is not told."""
    return _measured(window, window.spans.size_bytes)


@per_window
def measure_by_class(window: Window) -> Part:
    """The same by (name, group, power of two at or below the size)."""
    size_bytes = window.spans.size_bytes
    classes = np.left_shift(1, np.floor(np.log2(np.maximum(size_bytes, 1))).astype(np.int64))
    return _measured(window, np.where(size_bytes > 0, classes, size_bytes))


def _measured(window: Window, size_class: Ints) -> Part:
    spans = window.spans
    rows = np.flatnonzero(spans.kind == Kind.COLLECTIVE)
    recorded, compute = _recorded(spans), spans.busy(Kind.COMPUTE)
    columns = np.stack((spans.collective[rows], spans.group[rows], size_class[rows]), axis=1)
    keys, number = np.unique(columns, axis=0, return_inverse=True)
    order = np.argsort(number.reshape(-1), kind="stable")
    bounds = np.searchsorted(number.reshape(-1)[order], np.arange(len(keys) + 1))
    pieces = {}
    for at, (collective, group, size_bytes) in enumerate(keys.tolist()):
        name = spans.collectives[collective] if collective >= 0 else ""
        key = (name, spans.groups[group] if group >= 0 else "", size_bytes)
        pieces[key] = _piece(spans, rows[order[bounds[at] : bounds[at + 1]]], recorded, compute)
    return Part(window.rank, pieces)


def _recorded(spans: SpanTable) -> Intervals | None:
    """The waiting that the trace itself tells of collectives, None where it tells none apart."""
    waits = spans.of_kind(Kind.WAIT)
    return waits.busy() if (waits.collective >= 0).any() else None


def _piece(spans: SpanTable, row: Ints, waits: Intervals | None, compute: Intervals) -> Piece:
    busy = union(spans.start_ns[row], spans.end_ns[row])
    sizes = spans.size_bytes[row]
    return Piece(
        count=len(row),
        row=row,
        busy_ns=busy.total_ns,
        hidden_ns=(busy & compute).total_ns,
        wait_ns=None if waits is None else (waits & busy).total_ns,
        bytes=int(sizes.sum()) if bool((sizes >= 0).all()) else -1,
    )


@dataclass(frozen=True)
class Met:
    """What the matching adds to a piece: of ``matched`` calls, ``wait + transfer`` is the time that they take."""

    matched: int
    wait_ns: int
    transfer_ns: int
    ranks: int
    bytes: int
    late_ns: Counter[int]
    last: int
    beside_ns: int = 0


def _met(piece: Piece, window: Window, waits: WindowWaits | None) -> Met:
    mine = np.isin(waits.row, piece.row) if waits is not None else np.empty(0, dtype=bool)
    if waits is None or not mine.any():
        busy_ns, wait_ns = piece.busy_ns, piece.wait_ns
        recorded = wait_ns is not None
        moved_ns = busy_ns - wait_ns if wait_ns is not None else 0
        beside_ns = beside_ns_of(window, piece.row, piece.row, None) if recorded else 0
        return Met(piece.count if recorded else 0, wait_ns or 0, moved_ns, 0, piece.bytes, Counter(), 0, beside_ns)
    sizes = window.spans.size_bytes[waits.row[mine]]
    late_ns = Counter(charges(waits, mine))
    last, ranks = int((waits.last_rank[mine] == window.rank).sum()), int(waits.ranks[mine].max())
    moved_bytes = int(sizes.sum()) if bool((sizes >= 0).all()) else -1
    if piece.wait_ns is not None:  # what the trace records of waiting beats what can be told from its peers
        moved_ns = piece.busy_ns - piece.wait_ns
        beside_ns = beside_ns_of(window, piece.row, piece.row, None)
        return Met(piece.count, piece.wait_ns, moved_ns, ranks, piece.bytes, late_ns, last, beside_ns)
    busy_ns = union(waits.start_ns[mine], waits.end_ns[mine]).total_ns
    wait_ns = waits.waiting(mine).total_ns
    beside_ns = beside_ns_of(window, waits.row[mine], piece.row, waits)
    return Met(int(mine.sum()), wait_ns, busy_ns - wait_ns, ranks, moved_bytes, late_ns, last, beside_ns)


Row = tuple[Window, Piece, Met]


def collectives(run: Run) -> tuple[CollectiveTotal, ...]:
    """By busy time, largest first."""
    return tuple(total for total, _ in collective_rows(run))


def collective_rows(run: Run) -> tuple[tuple[CollectiveTotal, tuple[Row, ...]], ...]:
    """The same, each with what every window has of it."""
    windows = [window for window in run.windows if window.device_kind != "none"]
    waits = waiting(run).windows
    many = _many_sizes(measure(window) for window in windows)
    found: dict[Key, list[Row]] = {}
    for window in windows:
        for key, piece, met in _of_window(window, (waits.get(window), many)):
            found.setdefault(key, []).append((window, piece, met))
    totals = [(_total(key, rows, is_class=key[:2] in many), tuple(rows)) for key, rows in found.items()]
    return tuple(sorted(totals, key=lambda told: _place(told[0])))


@per_pair
def _of_window(
    window: Window, about: tuple[WindowWaits | None, frozenset[tuple[str, str]]]
) -> tuple[tuple[Key, Piece, Met], ...]:
    """Each collective of a window with what the matching adds; those of ``many`` sizes by classes of size."""
    waits, many = about
    exact, classed = measure(window).pieces, measure_by_class(window).pieces if many else {}
    pieces = {key: piece for key, piece in exact.items() if key[:2] not in many}
    pieces |= {key: piece for key, piece in classed.items() if key[:2] in many}
    return tuple((key, piece, _met(piece, window, waits)) for key, piece in pieces.items())


def _place(total: CollectiveTotal) -> tuple[int, str, str, int]:
    return -total.busy_ns, total.name, total.group, total.size_bytes or -1


def _many_sizes(parts: Iterable[Part]) -> frozenset[tuple[str, str]]:
    keys = {key for part in parts for key in part.pieces}
    sizes = Counter(key[:2] for key in keys)
    return frozenset(pair for pair, count in sizes.items() if count > MOST_SIZES)


def _total(key: Key, rows: list[Row], *, is_class: bool) -> CollectiveTotal:
    name, group, size_bytes = key
    busy_ns = sum(piece.busy_ns for _, piece, _ in rows)
    hidden_ns = sum(piece.hidden_ns for _, piece, _ in rows)
    count = sum(piece.count for _, piece, _ in rows)
    matched = sum(met.matched for _, _, met in rows)
    transfer_ns = sum(met.transfer_ns for _, _, met in rows)
    moved = [met.bytes for _, _, met in rows if met.matched]
    ranks = {met.ranks for _, _, met in rows if met.ranks}
    group_size = ranks.pop() if len(ranks) == 1 else 0 if ranks else devices_of(group)
    algbw = algorithm_bytes_per_s(sum(moved), transfer_ns) if moved and min(moved) >= 0 else None
    is_uneven = name in _MAY_DIFFER and (is_class or _differ(rows, group_size))
    factor = None if is_uneven else bus_factor(name, group_size)
    total_bytes = [piece.bytes for _, piece, _ in rows]
    return CollectiveTotal(
        name=name,
        group=group,
        size_bytes=round(sum(total_bytes) / count) if min(total_bytes) >= 0 else None,
        count=count,
        ranks=tuple(sorted({window.rank for window, _, _ in rows})),
        busy_ns=busy_ns,
        hidden_ns=hidden_ns,
        exposed_ns=busy_ns - hidden_ns,
        wait_ns=sum(met.wait_ns for _, _, met in rows) if matched else None,
        transfer_ns=transfer_ns if matched else None,
        matched=matched,
        group_size=group_size,
        algbw_bytes_per_s=algbw,
        busbw_bytes_per_s=algbw * factor if algbw is not None and factor is not None else None,
        late_ns=_summed([met.late_ns for _, _, met in rows]),
        last=_summed([Counter({window.rank: met.last}) for window, _, met in rows]),
        size_class=(size_bytes, 2 * size_bytes) if is_class and size_bytes > 0 else None,
        beside_ns=sum(met.beside_ns for _, _, met in rows) if matched else None,
        is_uneven=is_uneven,
    )


def _differ(rows: list[Row], group_size: int) -> bool:
    """Whether some ranks of a call that is matched over all of them stand in a row of another size."""
    here = {window.rank for window, _, met in rows if met.ranks}
    return 0 < len(here) < group_size


def _summed(counts: Iterable[Counter[int]]) -> dict[int, int]:
    total: Counter[int] = Counter()
    for count in counts:
        total += count
    return dict(sorted(total.items()))


def narrowed(run: Run, row: Row, keep: npt.NDArray[np.bool_]) -> Row:
    """Some of the calls of a row alone, ``keep`` of those that its piece counts."""
    window, piece, _ = row
    spans = window.spans
    mine = _piece(spans, piece.row[keep], _recorded(spans), spans.busy(Kind.COMPUTE))
    return window, mine, _met(mine, window, waiting(run).windows.get(window))


def total_of(like: CollectiveTotal, rows: Iterable[Row]) -> CollectiveTotal:
    """The same collective, group and size, over some rows alone."""
    size_bytes = (
        like.size_class[0] if like.size_class is not None else -1 if like.size_bytes is None else like.size_bytes
    )
    return _total((like.name, like.group, size_bytes), list(rows), is_class=like.size_class is not None)
