"""How long a collective takes among the devices of a cluster."""

from __future__ import annotations

from meshscope.advisor.cluster import Cluster
from meshscope.advisor.costs import bus
from meshscope.advisor.costs.across import across
from meshscope.advisor.costs.within import within
from meshscope.advisor.figures import Figure


def collective(cluster: Cluster, kind: str, size_bytes: float, ranks: int, stride: int = 1, sharers: int = 1) -> Figure:
    """Seconds of one ``kind``: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast or send.

    ``size_bytes`` is the whole tensor, as in nccl-tests: what an all-gather ends with, what a reduce-scatter starts
    from, what each rank of an all-to-all starts from. ``ranks`` are in the group, neighbours ``stride`` apart in global
    rank, so that a group lies within a node or strides over nodes. ``sharers`` such groups use the same wires at the
    same time. Fewer than two ranks take no time.

    Raises ValueError for another kind.
    """
    if kind not in bus.KINDS:
        raise ValueError(f"no collective is called {kind!r}")
    if ranks < 2 or size_bytes <= 0:
        return Figure(0.0, 0.0, 0.0, "analytic", "nothing to send")
    local, nodes = placing(cluster, ranks, stride)
    if nodes == 1:
        parts = within(cluster.inside, kind, size_bytes, ranks, cluster.per_node)
    else:
        parts = across(cluster, kind, size_bytes, local, nodes)
    took_s = parts.begun_s + parts.moved_s * sharers
    return Figure(took_s, took_s / (1 + parts.off), took_s * (1 + parts.off), parts.source, parts.where)


def placing(cluster: Cluster, ranks: int, stride: int = 1) -> tuple[int, int]:
    """How many of a group are in each node, and in how many nodes; the group begins where a node does."""
    local = min(ranks, max(cluster.per_node // max(stride, 1), 1))
    return local, -(-ranks // local)
