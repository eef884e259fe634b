"""Collectives among devices of several nodes."""

from __future__ import annotations

from meshscope.advisor.cluster import Cluster
from meshscope.advisor.costs import bus
from meshscope.advisor.costs.within import Parts, within
from meshscope.advisor.figures import Source
from meshscope.advisor.tables import table


def across(cluster: Cluster, kind: str, size_bytes: float, local: int, nodes: int) -> Parts:
    """Of ``local`` devices in each of ``nodes`` nodes, each with its own way into the network.

    A flat ring over all of them, of which each device carries its part between nodes; between two nodes a tree, which
    sends a tensor once each way instead of nearly twice. Whichever is slower, the network or the links within the
    nodes, is what it takes. TPU slices reduce within the slice first and between slices what is left.
    """
    network, inside = cluster.between, cluster.inside
    if inside.kind == "torus":
        return _slices(cluster, kind, size_bytes, local, nodes)
    wire_bytes = _wire_bytes(kind, size_bytes, local, nodes)
    rate = network.bytes_per_s * network.efficiency
    fade = 1 + (network.half_bytes / size_bytes) ** network.power if network.half_bytes else 1.0
    ranks = local * nodes
    moved_s = wire_bytes / rate
    if local > 1:
        ring = _ring_rate(cluster, kind, nodes)
        moved_s = max(moved_s, bus.factor(kind, ranks) * size_bytes / ring if ring else 0.0)
    step_s = network.step_s or table("collectives")["steps"]["ring_s"]
    has_tree = nodes <= network.tree_nodes or not network.tree_nodes
    begun_s = bus.begun_s(kind, local, nodes, step_s, network.latency_s, has_tree=has_tree)
    return Parts(begun_s, moved_s * fade, _off(cluster), _source(cluster), f"ring over {nodes} nodes, {network.name}")


def _wire_bytes(kind: str, size_bytes: float, local: int, nodes: int) -> float:
    """That each device sends into the network."""
    ranks = local * nodes
    if kind == "all_to_all":
        return size_bytes * (ranks - local) / ranks
    if kind == "send":
        return size_bytes
    if kind == "all_reduce" and nodes == 2:
        return size_bytes / local
    return bus.factor(kind, ranks) * size_bytes / local


def _ring_rate(cluster: Cluster, kind: str, nodes: int) -> float:
    """Bus bandwidth that the links within the nodes allow. Switches that reduce help a tree over two nodes, no ring."""
    known = cluster.inside.measured_bus_bytes_per_s
    if kind == "all_reduce" and not (nodes == 2 and cluster.inside.has_multicast):
        return known.get("ring") or known.get("all_reduce", 0.0)
    return known.get(kind) or known.get("ring") or known.get("all_reduce", 0.0)


def _slices(cluster: Cluster, kind: str, size_bytes: float, local: int, nodes: int) -> Parts:
    """All-reduce: reduce-scatter in the slice, all-reduce of a part between slices, all-gather in the slice."""
    network = cluster.between
    inner = within(cluster.inside, kind, size_bytes, local, cluster.per_node) if local > 1 else None
    wire_bytes = size_bytes if kind == "send" else bus.factor(kind, nodes) * size_bytes / local
    moved_s = wire_bytes / (network.bytes_per_s * network.efficiency) + (inner.moved_s if inner else 0.0)
    begun_s = bus.begun_s(kind, 1, nodes, network.latency_s, network.latency_s) + (inner.begun_s if inner else 0.0)
    return Parts(begun_s, moved_s, _off(cluster), _source(cluster), f"{network.name} between {nodes} slices")


def _off(cluster: Cluster) -> float:
    off = table("collectives")["off"]
    return float(off["assumed" if _source(cluster) == "assumed" else "network"])


def _source(cluster: Cluster) -> Source:
    said = cluster.between.sources.get("efficiency", "")
    return "assumed" if said.startswith("assumed") or cluster.is_between_assumed else "interpolated"
