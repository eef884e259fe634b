"""Which names were taken for what, and by which rule: the evidence behind every share of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.parts import per_window
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window

WORK = (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)
_SHOWN = (*WORK, Kind.WAIT)
_NO_RULE = "the trace's own category"


@dataclass(frozen=True)
class KernelName:
    """One name: ``count`` spans, and ``busy_ns``, the time in which at least one of them ran."""

    name: str
    count: int
    busy_ns: int


@dataclass(frozen=True)
class KernelGroup:
    """Names that one rule took for one thing, the longest time first. ``collective`` is "" for what is none.

    ``kind`` is compute, collective, copy, wait, or other (recognised, and not counted as work). On CPU ranks an
    operator that waits inside itself is one span for each stretch of its work.
    """

    kind: str
    collective: str
    rule: str
    count: int
    busy_ns: int
    names: tuple[KernelName, ...]


@dataclass(frozen=True)
class RankKernels:
    """One rank over all its windows; ``busy_ns`` is the time with any device work, of which shares are told."""

    rank: int
    device: int
    busy_ns: int
    groups: tuple[KernelGroup, ...]


_Key = tuple[str, str, str]


@dataclass(frozen=True)
class Part:
    """One window: count and busy ns of each group, and of each name in it."""

    busy_ns: int
    groups: dict[_Key, tuple[int, int]]
    names: dict[tuple[_Key, str], tuple[int, int]]


@per_window
def measure(window: Window) -> Part:
    """The window's spans of work and waiting, and whatever a rule took for neither."""
    spans = window.spans
    rows = np.flatnonzero(np.isin(spans.kind, _SHOWN) | ((spans.kind == Kind.OTHER) & (spans.rule >= 0)))
    columns = (spans.kind, spans.collective, spans.rule, spans.name)
    told = np.stack([column[rows].astype(np.int64) for column in columns], axis=1)
    groups = {_key(spans, row): _busy(spans, same) for row, same in _alike(rows, told[:, :3])}
    names = {(_key(spans, row), _name(spans, row)): _busy(spans, same) for row, same in _alike(rows, told)}
    return Part(spans.busy(*WORK).total_ns, groups, names)


def _alike(rows: npt.NDArray[np.int64], told: npt.NDArray[np.int64]) -> Iterable[tuple[int, npt.NDArray[np.int64]]]:
    """Rows of equal ``told`` (n, k) together, with the first of them."""
    if not len(rows):
        return
    _, number = np.unique(told, axis=0, return_inverse=True)
    order = np.argsort(number.reshape(-1), kind="stable")
    cuts = np.flatnonzero(np.diff(number.reshape(-1)[order])) + 1
    for same in np.split(rows[order], cuts):
        yield int(same[0]), same


def _busy(spans: SpanTable, rows: npt.NDArray[np.int64]) -> tuple[int, int]:
    return len(rows), union(spans.start_ns[rows], spans.end_ns[rows]).total_ns


def _key(spans: SpanTable, row: int) -> _Key:
    collective = spans.collectives[spans.collective[row]] if spans.collective[row] >= 0 else ""
    rule = spans.rules[spans.rule[row]] if spans.rule[row] >= 0 else _NO_RULE
    return Kind(spans.kind[row]).name.lower(), collective, rule


def _name(spans: SpanTable, row: int) -> str:
    return spans.names[spans.name[row]] if spans.name[row] >= 0 else ""


def combine(parts: Iterable[Part]) -> Part:
    """Several windows of one rank, added up: they do not overlap."""
    busy_ns = 0
    groups: dict[_Key, tuple[int, int]] = {}
    names: dict[tuple[_Key, str], tuple[int, int]] = {}
    for part in parts:
        busy_ns += part.busy_ns
        for group, found in part.groups.items():
            groups[group] = _sum(groups.get(group), found)
        for name, found in part.names.items():
            names[name] = _sum(names.get(name), found)
    return Part(busy_ns, groups, names)


def _sum(a: tuple[int, int] | None, b: tuple[int, int]) -> tuple[int, int]:
    return b if a is None else (a[0] + b[0], a[1] + b[1])


def kernels(run: Run) -> tuple[RankKernels, ...]:
    """Per rank, sorted by rank; groups by kind, then the longest time first."""
    ranks: dict[int, list[Window]] = {}
    for window in run.windows:
        ranks.setdefault(window.rank, []).append(window)
    return tuple(_rank(ranks[rank]) for rank in sorted(ranks))


def _rank(windows: list[Window]) -> RankKernels:
    whole = combine(measure(window) for window in windows)
    groups = [_group(key, found, whole) for key, found in whole.groups.items()]
    order = ("collective", "compute", "copy", "wait", "other")
    groups.sort(key=lambda group: (order.index(group.kind), -group.busy_ns, group.collective, group.rule))
    return RankKernels(windows[-1].rank, windows[-1].device, whole.busy_ns, tuple(groups))


def _group(key: _Key, found: tuple[int, int], whole: Part) -> KernelGroup:
    names = [KernelName(name, *told) for (group, name), told in whole.names.items() if group == key]
    names.sort(key=lambda one: (-one.busy_ns, -one.count, one.name))
    return KernelGroup(*key, *found, tuple(names))
