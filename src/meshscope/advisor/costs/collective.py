"""How long a collective takes."""

from __future__ import annotations

from meshscope.advisor.cluster import Cluster
from meshscope.advisor.figures import Figure


def collective(cluster: Cluster, kind: str, size_bytes: float, ranks: int, stride: int = 1, sharers: int = 1) -> Figure:
    """Seconds of one ``kind`` (all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send).

    ``size_bytes`` is the whole tensor, as in nccl-tests: what an all-gather ends with and a reduce-scatter starts from.
    ``ranks`` are in the group, neighbours ``stride`` apart in global rank; ``sharers`` groups use the same wires at the
    same time.
    """
    if ranks < 2:
        return Figure(0.0, 0.0, 0.0, "analytic", "one rank")
    factor = {"all_reduce": 2.0, "broadcast": 1.0, "send": 1.0}.get(kind, 1.0) * (
        (ranks - 1) / ranks if kind not in ("broadcast", "send") else 1.0
    )
    is_inside = ranks * stride <= cluster.per_node
    link = cluster.inside if is_inside else cluster.between
    rate = 0.78 * link.bytes_per_s
    took_s = 30e-6 + factor * size_bytes * sharers / rate
    return Figure(took_s, took_s * 0.8, took_s * 1.4, "datasheet", link.name)
