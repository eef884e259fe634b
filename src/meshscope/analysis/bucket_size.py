"""How long steps would take with DDP buckets of another size, where the trace's own all-reduces say what one costs.

The model: an all-reduce of s bytes takes α + s/β once all ranks have come, fitted to those that were recorded;
gradients become ready evenly between the moments at which the recorded buckets did; all-reduces follow one another; and
what is left of them when the backward pass has computed adds to the step. It is used only where it gives back the
recorded buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from meshscope.analysis.graph import Graph, Part
from meshscope.analysis.graph_device import Range
from meshscope.analysis.graph_run import RoundGraph
from meshscope.analysis.passes import Pass, is_ddp, passes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SIZES_BYTES = tuple(size << 20 for size in (1, 2, 5, 10, 25, 50, 100, 250))
"""What is tried: ``bucket_cap_mb`` counts in these."""

FEWEST_SIZES, LEAST_RANGE, LEAST_FIT = 3, 4, 0.9
MOST_ERROR = 0.05


@dataclass(frozen=True)
class Cost:
    """An all-reduce of s bytes takes ``latency_ns + s × ns_per_byte``."""

    latency_ns: float
    ns_per_byte: float

    def of(self, size_bytes: float) -> float:
        return self.latency_ns + size_bytes * self.ns_per_byte


@dataclass(frozen=True, eq=False)
class Backward:
    """One backward pass over all ranks, by the common clock; columns (b,) are of its buckets in order.

    A bucket is ready when it is on the last rank, and ends when it does on the last; ``computed_ns`` likewise.
    """

    start_ns: int
    computed_ns: int
    size_bytes: Ints
    ready_ns: Ints
    end_ns: int


@dataclass(frozen=True)
class Tails:
    """What all-reduces cost, and leave behind all backward passes (ns): as modelled now, and by bucket size."""

    cost: Cost
    now_ns: float
    then_ns: dict[int, float]


def bucket_sizes(found: RoundGraph) -> dict[int, int] | str:
    """What the steps would take in all (ns), by the size of buckets; why that cannot be said, "" for what is no DDP."""
    told = tails(found)
    if isinstance(told, str) or found.graph is None:
        return told if isinstance(told, str) else ""
    length_ns = found.graph.length_ns
    return {size_bytes: round(length_ns + then_ns - told.now_ns) for size_bytes, then_ns in told.then_ns.items()}


def tails(found: RoundGraph) -> Tails | str:
    """What is left of all-reduces behind the backward passes; or why it cannot be said, "" for what is no DDP."""
    graph = found.graph
    if graph is None or not all(is_ddp(here.window) for here in found.ranges):
        return ""
    cost = fitted(*_all_reduces(found, graph))
    if isinstance(cost, str):
        return cost
    backward = _backward(found.ranges)
    if isinstance(backward, str):
        return backward
    modelled_ns = [_end(cost, one.ready_ns.tolist(), one.size_bytes.tolist()) for one in backward]
    error_ns = max(abs(end - one.end_ns) for end, one in zip(modelled_ns, backward, strict=True))
    if error_ns > MOST_ERROR * graph.length_ns / max(1, len(found.steps)):
        return "the model of an all-reduce does not give back when the recorded buckets ended"
    then_ns = {
        size_bytes: sum(_tail(one, _end(cost, *_cut(one, size_bytes))) for one in backward)
        for size_bytes in SIZES_BYTES
        if size_bytes <= min(int(one.size_bytes.sum()) for one in backward)
    }
    if not then_ns:
        return "the gradients are smaller than the smallest bucket that is tried"
    return Tails(cost, sum(_tail(one, end) for one, end in zip(backward, modelled_ns, strict=True)), then_ns)


def _all_reduces(found: RoundGraph, graph: Graph) -> tuple[Ints, Ints]:
    """Size and transfer of every matched all-reduce whose size is known."""
    moments = np.flatnonzero(graph.part == Part.TRANSFER)
    sizes, transfers = [], []
    for here in found.ranges:
        mine = moments[graph.window[moments] == here.number]
        row = graph.row[mine]
        kinds = np.array([name == "all_reduce" for name in (*here.spans.collectives, "")], dtype=bool)
        keep = kinds[here.spans.collective[row]] & (here.spans.size_bytes[row] > 0)
        sizes.append(here.spans.size_bytes[row][keep])
        transfers.append(graph.weight_ns[mine][keep])
    return np.concatenate(sizes), np.concatenate(transfers)


def fitted(size_bytes: Ints, transfer_ns: Ints) -> Cost | str:
    """Least squares over the median transfer of each size; or why not: too few sizes, too alike, or on no line."""
    sizes = np.unique(size_bytes)
    if not len(sizes):
        return "no all-reduce of known size is matched over ranks"
    if len(sizes) < FEWEST_SIZES or sizes[-1] < LEAST_RANGE * sizes[0]:
        return "matched all-reduces have too few sizes to tell latency from bandwidth"
    medians = np.array([np.median(transfer_ns[size_bytes == size]) for size in sizes.tolist()])
    slope, latency_ns = np.polyfit(sizes.astype(np.float64), medians, 1)
    left = float(((medians - latency_ns - slope * sizes) ** 2).sum())
    whole = float(((medians - medians.mean()) ** 2).sum())
    if slope <= 0 or latency_ns < 0 or left > (1 - LEAST_FIT) * whole:
        return "the time of matched all-reduces does not follow their size"
    return Cost(float(latency_ns), float(slope))


def _backward(ranges: Sequence[Range]) -> list[Backward] | str:
    of_ranks = []
    for here in ranges:
        inside = [one for one in passes(here.window) if len(one.row) and _is_inside(here, one)]
        if not inside or any(min(one.signature) < 0 for one in inside):
            return "buckets of a backward pass, or their sizes, are not known"
        of_ranks.append([_common(here, one) for one in inside])
    signatures = [[one.size_bytes.tolist() for one in some] for some in of_ranks]
    if any(one != signatures[0] for one in signatures[1:]):
        return "ranks differ in their buckets"
    return [
        Backward(
            start_ns=min(one.start_ns for one in some),
            computed_ns=max(one.computed_ns for one in some),
            size_bytes=some[0].size_bytes,
            ready_ns=np.max([one.ready_ns for one in some], axis=0),
            end_ns=max(one.end_ns for one in some),
        )
        for some in zip(*of_ranks, strict=True)
    ]


def _is_inside(here: Range, one: Pass) -> bool:
    if here.steps:
        return one.step in here.steps
    start_ns = int(here.clock.common(np.array([one.start_ns], dtype=np.int64))[0])
    return here.start_ns <= start_ns < here.end_ns


def _common(here: Range, one: Pass) -> Backward:
    bounds = np.array([one.begun_ns, one.computed_ns, one.end_ns.max()], dtype=np.int64)
    start_ns, computed_ns, end_ns = here.clock.common(bounds).tolist()
    return Backward(start_ns, computed_ns, one.size_bytes, here.clock.common(one.ready_ns), end_ns)


def _cut(one: Backward, size_bytes: int) -> tuple[list[float], list[float]]:
    """When buckets of another size would be ready, and the size of each: the last takes what is left."""
    arrived = np.concatenate(([0], np.cumsum(one.size_bytes))).astype(np.float64)
    times = np.maximum.accumulate(np.concatenate(([one.start_ns], one.ready_ns))).astype(np.float64)
    bounds = np.append(np.arange(0, arrived[-1], size_bytes), arrived[-1])
    return np.interp(bounds[1:], arrived, times).tolist(), [high - low for low, high in pairwise(bounds.tolist())]


def _end(cost: Cost, ready_ns: Sequence[float], size_bytes: Sequence[float]) -> float:
    """When the last of all-reduces ends that follow one another."""
    end_ns = -np.inf
    for ready, size in zip(ready_ns, size_bytes, strict=True):
        end_ns = max(end_ns, ready) + cost.of(size)
    return float(end_ns)


def _tail(one: Backward, end_ns: float) -> float:
    return max(0.0, end_ns - one.computed_ns)
