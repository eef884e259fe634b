"""A graph of moments played again with other weights, and the chain of moments that held its end up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.graph import Graph, Part

Ints = npt.NDArray[np.int64]


def replay(graph: Graph, weight_ns: Ints | None = None, *, together: bool = True) -> Ints:
    """When each moment would come, shape (n,), with other weights in place of the measured ones.

    Moments before the start keep their times. Without ``together`` no rank waits for another: each collective takes
    its transfer once its own rank has come.
    """
    weights = (graph.weight_ns if weight_ns is None else weight_ns).tolist()
    times = graph.time_ns.tolist()
    first, before = graph.first.tolist(), graph.before.tolist()
    meets = (graph.part == Part.MEETING).tolist()
    low = first[0]
    for at, high in enumerate(first[1:]):
        if high > low:
            latest = None
            for one in before[low:high]:
                if together or not meets[one]:
                    time = times[one]
                    if latest is None or time > latest:
                        latest = time
            if latest is not None:
                times[at] = latest + weights[at]
        low = high
    return np.array(times, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Chain:
    """Moments from the start to the end, each bound by the one before: ``moment`` (k,) with the time before each.

    ``from_ns`` and ``to_ns`` (k,) are that time, cut at the start; they follow one another without a gap.
    """

    moment: Ints
    from_ns: Ints
    to_ns: Ints


def chain(graph: Graph, times_ns: Ints) -> Chain:
    """The longest path: from the end back over what came last each time, the first of several."""
    at, moments = len(graph) - 1, []
    while times_ns[at] > graph.start_ns:
        moments.append(at)
        some = graph.before[graph.first[at] : graph.first[at + 1]]
        if not len(some):
            break
        at = int(some[times_ns[some].argmax()])
    moment = np.array(moments[::-1], dtype=np.int64)
    to_ns = times_ns[moment]
    return Chain(moment, np.concatenate(([graph.start_ns], to_ns[:-1])).astype(np.int64)[: len(moment)], to_ns)
