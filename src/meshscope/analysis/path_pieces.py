"""The critical path cut into pieces that follow one another, each of one part, one rank and one span."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from meshscope.analysis.calls import is_gloo
from meshscope.analysis.graph import Graph, Part
from meshscope.analysis.graph_cpu import computing_thread
from meshscope.analysis.graph_device import Range
from meshscope.analysis.graph_run import RoundGraph
from meshscope.analysis.nesting import nest
from meshscope.analysis.operations import first_of_call
from meshscope.analysis.replay import Chain
from meshscope.intervals import Intervals, difference, intersection, union
from meshscope.spans import Kind, SpanTable

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NAMES = {
    Part.START: "late_start",
    Part.COMPUTE: "compute",
    Part.TRANSFER: "communication",
    Part.WAITED: "communication_and_waiting",
    Part.COPY: "copy",
    Part.LAUNCH: "launch",
    Part.HOST: "host",
    Part.DELAY: "delay",
}
"""``late_start``: a rank began its first step after the first one; ``delay``: nothing recorded explains it."""

NAMED = (Part.COMPUTE, Part.TRANSFER, Part.WAITED, Part.COPY)
"""Parts whose pieces are of a span that has a name."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """k pieces as columns of shape (k,), by the common clock; their lengths add up to the path.

    ``window`` numbers the ranges of the round and ``row`` the rows of their spans, −1 where a piece is of no span.
    """

    from_ns: Ints
    to_ns: Ints
    part: Ints
    rank: Ints
    window: Ints
    row: Ints

    @property
    def length_ns(self) -> Ints:
        return self.to_ns - self.from_ns

    def where(self, keep: Flags | Ints) -> Pieces:
        """Those that a mask keeps, or those of some numbers in their order."""
        return Pieces(*(column[keep] for column in vars(self).values()))

    def by_window(self) -> Iterator[tuple[int, Ints]]:
        """The windows that pieces are of, and which: of a thousand ranks a path may go through few."""
        order = np.argsort(self.window, kind="stable")
        windows, first = np.unique(self.window[order], return_index=True)
        for number, (low, high) in zip(windows.tolist(), pairwise([*first.tolist(), len(order)]), strict=True):
            if number >= 0:
                yield number, order[low:high]

    def total_ns(self) -> dict[str, int]:
        """By part, in the order of ``NAMES``; without those that take no time."""
        length_ns = self.length_ns
        total = {name: int(length_ns[self.part == one].sum()) for one, name in NAMES.items()}
        return {name: ns for name, ns in total.items() if ns}


def chained(graph: Graph, path: Chain) -> Pieces:
    """A piece before each moment of a chain. The time before the end of all is of the rank whose moment came last."""
    part, rank = graph.part[path.moment].astype(np.int64), graph.rank[path.moment].copy()
    part[part == Part.MEETING] = Part.DELAY
    for at in np.flatnonzero(rank < 0).tolist():
        rank[at] = rank[at - 1] if at else -1
    return Pieces(path.from_ns, path.to_ns, part, rank, graph.window[path.moment], graph.row[path.moment])


def measured(found: RoundGraph, graph: Graph, path: Chain) -> Pieces:
    """Of the path as it was: there the time of a CPU rank's thread is that of the operators it is in."""
    pieces = chained(graph, path)
    for here in found.ranges:
        if is_gloo(here.window):
            pieces = _cut(pieces, here)
    return pieces


def _cut(pieces: Pieces, here: Range) -> Pieces:
    """The pieces of the rank's thread as compute, each of the innermost operator, and what is left of them."""
    spans = here.spans
    mine = (pieces.part == Part.HOST) & (pieces.rank == here.rank) & (pieces.length_ns > 0)
    rows = np.flatnonzero((spans.kind == Kind.COMPUTE) & (spans.lane == computing_thread(spans)))
    compute = union(spans.start_ns[rows], spans.end_ns[rows])
    host = Intervals(pieces.from_ns[mine], pieces.to_ns[mine])
    computing = _split(intersection(compute, host), np.concatenate((spans.start_ns[rows], spans.end_ns[rows])))
    inside = _of(computing, Part.COMPUTE, here, _innermost(spans, rows, computing.start_ns))
    outside = difference(host, compute)
    kept = pieces.where(~mine), inside, _of(outside, Part.HOST, here, np.full(len(outside), -1, dtype=np.int64))
    joined = [np.concatenate(columns) for columns in zip(*(vars(one).values() for one in kept), strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return Pieces(*(column[order] for column in joined))


def _split(whole: Intervals, at_ns: Ints) -> Intervals:
    """The same time cut at some moments, so that pieces touch."""
    at_ns = np.unique(at_ns)
    within = np.searchsorted(whole.start_ns, at_ns, side="left") - 1
    cuts = at_ns[(within >= 0) & (at_ns < whole.end_ns[np.maximum(within, 0)])] if len(whole) else at_ns[:0]
    return Intervals(np.sort(np.concatenate((whole.start_ns, cuts))), np.sort(np.concatenate((whole.end_ns, cuts))))


def _innermost(spans: SpanTable, rows: Ints, at_ns: Ints) -> Ints:
    """The first row of the call that is innermost at each moment, −1 where none is."""
    around = nest(np.zeros(len(rows), dtype=np.int64), spans.start_ns[rows], spans.end_ns[rows])
    place = around.innermost(np.zeros(len(at_ns), dtype=np.int64), at_ns)
    first = first_of_call(spans, rows)
    return np.where(place >= 0, first[place], -1) if len(rows) else place


def _of(when: Intervals, part: Part, here: Range, row: Ints) -> Pieces:
    parts, rank, window = (np.full(len(when), one, dtype=np.int64) for one in (int(part), here.rank, here.number))
    return Pieces(when.start_ns, when.end_ns, parts, rank, window, row)
