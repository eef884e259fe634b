"""What share of a tensor each rank moves, and how many steps it takes: nccl-tests' and NCCL's arithmetic."""

from __future__ import annotations

import math
from typing import Literal, get_args

from meshscope.advisor.tables import table

Kind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"]
KINDS: tuple[str, ...] = get_args(Kind)


def factor(kind: str, ranks: int) -> float:
    """Bytes over each rank's wire per byte of the whole tensor: NVIDIA/nccl-tests doc/PERFORMANCE.md."""
    if kind in ("broadcast", "send"):
        return 1.0
    return (2.0 if kind == "all_reduce" else 1.0) * (ranks - 1) / ranks


def begun_s(kind: str, local: int, nodes: int, inside_s: float, between_s: float, *, has_tree: bool = True) -> float:
    """What a message takes that has hardly anything in it: a ring's steps, or (all-reduce, broadcast) a tree's where
    there are any, which are fewer where nodes are many. ``inside_s`` and ``between_s`` are the latencies of a step.

    Source: NVIDIA/nccl src/graph/tuning.cc.
    """
    constants = table("collectives")
    base_s = float(constants["curve"]["base_s"])
    ranks = local * nodes
    if kind in ("send", "all_to_all"):
        return base_s + (between_s if nodes > 1 else inside_s)
    passes = 2 if kind == "all_reduce" else 1
    hops = passes * (nodes - 1)
    ring_s = base_s + (passes * (ranks - 1) - hops) * inside_s + hops * between_s
    if kind not in ("all_reduce", "broadcast") or nodes == 1 or not has_tree:
        return ring_s
    tree_s = float(constants["steps"]["tree_s"])
    return min(ring_s, base_s + passes * ((local - 1) * tree_s + math.log2(nodes) * between_s))
