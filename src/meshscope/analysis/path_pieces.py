"""The critical path cut into pieces that follow one another, each of one part, one rank and one span."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.calls import is_gloo
from meshscope.analysis.critical_path import NAMES
from meshscope.analysis.graph import Graph, Part
from meshscope.analysis.graph_cpu import computing_thread
from meshscope.analysis.graph_device import Range
from meshscope.analysis.graph_run import RoundGraph
from meshscope.analysis.replay import Chain
from meshscope.intervals import Intervals, difference, intersection, union
from meshscope.spans import Kind

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


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

    def where(self, keep: Flags) -> Pieces:
        return Pieces(*(column[keep] for column in vars(self).values()))

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
    """Of the path as it was: there the time of a CPU rank's thread is cut where it is in operators."""
    pieces = chained(graph, path)
    for here in found.ranges:
        if is_gloo(here.window):
            pieces = _cut(pieces, here)
    return pieces


def _cut(pieces: Pieces, here: Range) -> Pieces:
    spans = here.spans
    mine = (pieces.part == Part.HOST) & (pieces.rank == here.rank)
    rows = (spans.kind == Kind.COMPUTE) & (spans.lane == computing_thread(spans))
    compute = union(spans.start_ns[rows], spans.end_ns[rows])
    host = Intervals(pieces.from_ns[mine], pieces.to_ns[mine])
    inside = _of(intersection(compute, host), Part.COMPUTE, here)
    outside = _of(difference(host, compute), Part.HOST, here)
    kept = pieces.where(~mine)
    joined = [np.concatenate(columns) for columns in zip(*(vars(one).values() for one in (kept, inside, outside)),
                                                         strict=True)]  # fmt: skip
    order = np.argsort(joined[0], kind="stable")
    return Pieces(*(column[order] for column in joined))


def _of(when: Intervals, part: Part, here: Range) -> Pieces:
    each = [np.full(len(when), value, dtype=np.int64) for value in (int(part), here.rank, here.number, -1)]
    return Pieces(when.start_ns, when.end_ns, *each)
