"""Layers of one lane laid into one another: one search in all of their intervals instead of one in each layer's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.coverage import BEFORE_ALL, Coverage, Ns

_FEW = 4096
"""Of more intervals than this it costs more to lay them out than any frame takes."""


@dataclass(frozen=True, eq=False)
class Stack:
    """n intervals of all layers in order, of which no two cover the same time.

    ``start_ns`` is of shape (n,), ``before_ns`` (layers, n + 1) what the first i of them cover of each layer,
    ``closed_ns`` (n + 1,) where the i-th ends (the first entry is before all times) and ``layer`` (n + 1,) whose it is.
    """

    start_ns: Ns
    before_ns: Ns
    closed_ns: Ns
    layer: Ns


def stack(layers: Sequence[Coverage]) -> Stack | None:
    """None where there are too many intervals for it, or some of two layers are at once."""
    if not layers or sum(map(len, layers)) > _FEW:
        return None
    start_ns = np.concatenate([one.start_ns for one in layers])
    order = np.argsort(start_ns, kind="stable")
    start_ns, end_ns = start_ns[order], np.concatenate([one.end_ns for one in layers])[order]
    if (end_ns[:-1] > start_ns[1:]).any():
        return None
    layer = np.repeat(np.arange(len(layers)), [len(one) for one in layers])[order]
    before_ns = np.zeros((len(layers), len(start_ns) + 1), dtype=np.int64)
    lasts_ns = np.where(layer == np.arange(len(layers))[:, None], end_ns - start_ns, 0)
    np.cumsum(lasts_ns, axis=1, out=before_ns[:, 1:])
    return Stack(start_ns, before_ns, np.append(BEFORE_ALL, end_ns), np.append(0, layer))


def stacked_columns(stacks: Sequence[Stack], edges_ns: Ns) -> Ns:
    """What each layer of some stacks has of the columns between edges, shape (layers of all, edges − 1); exact."""
    counts = [len(one.before_ns) for one in stacks]
    first: Ns = np.cumsum(counts) - np.array(counts, dtype=np.int64)
    covered_ns = np.empty((sum(counts), len(edges_ns)), dtype=np.int64)
    closed_ns, place = (np.empty((len(stacks), len(edges_ns)), dtype=np.int64) for _ in range(2))
    for at, (one, begin) in enumerate(zip(stacks, first.tolist(), strict=True)):
        begun = one.start_ns.searchsorted(edges_ns)
        one.before_ns.take(begun, axis=1, out=covered_ns[begin : begin + counts[at]], mode="clip")
        one.closed_ns.take(begun, out=closed_ns[at], mode="clip")
        one.layer.take(begun, out=place[at], mode="clip")
    # What has begun and not ended is covered up to the edge only; it is of one layer.
    np.subtract(closed_ns, edges_ns, out=closed_ns)
    np.maximum(closed_ns, 0, out=closed_ns)
    place += first[:, None]
    place *= len(edges_ns)
    place += np.arange(len(edges_ns))
    covered_ns.reshape(-1)[place.reshape(-1)] -= closed_ns.reshape(-1)
    busy_ns: Ns = np.subtract(covered_ns[:, 1:], covered_ns[:, :-1])
    return busy_ns
