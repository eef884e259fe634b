"""How long a step takes at a glance: good enough to say which candidates deserve to be computed, and for nothing else.

No figure from here is ever shown. Matrix products run at one share of the peak, collectives at one bandwidth per link,
and what hides behind compute hides wholly.
"""

from __future__ import annotations

from functools import lru_cache

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.bounds import counted_parameters
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster, DeviceSpec, Link

_SHARE_OF_MEASURED = 0.62
_SHARE_OF_PEAK = 0.45
_SHARE_OF_LINK = 0.75
_RECOMPUTED = {"none": 1.0, "selective": 1.08, "full": 1.33}
_BACKWARD_FRAC = 0.6
_KERNELS_PER_LAYER = 45
_USUAL_LAUNCH_S = 5e-6
_SMALL_TOKENS = 512
"""Products of fewer rows than some of this leave parts of the device idle."""


def estimated_s(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> float:
    """Seconds of a step, roughly."""
    micro = _micro_s(architecture, candidate, cluster)
    many = candidate.accumulate
    work = micro * many * (1 + (candidate.pipeline - 1) / (candidate.virtual * many))
    gathers, once = _data_s(architecture, candidate, cluster)
    exposed = max(0.0, gathers - micro) * many + max(0.0, once - _BACKWARD_FRAC * micro)
    return work + exposed + _optimizer_s(architecture, candidate, cluster)


def _micro_s(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> float:
    """Of one micro-batch on the fullest stage, with what tensor, context and expert parallelism put between."""
    stages = candidate.pipeline * candidate.virtual
    fullest = -(-architecture.layers // stages) * stages / architecture.layers
    tokens = candidate.micro_batch * candidate.seq_len
    flop = _flop_per_token(architecture, candidate.seq_len) * tokens * _RECOMPUTED[candidate.checkpointing] * fullest
    rows = tokens / candidate.context / candidate.tensor
    rate = _rate(cluster.device, candidate.numerics.compute) * rows / (rows + _SMALL_TOKENS)
    split = candidate.tensor * candidate.pipeline * candidate.context
    layers = architecture.layers / candidate.pipeline
    launched = layers * _KERNELS_PER_LAYER * 3 * (cluster.device.launch_s or _USUAL_LAUNCH_S)
    return max(flop / split / rate, launched) + layers * _between_s(architecture, candidate, cluster)


@lru_cache(maxsize=16)
def _flop_per_token(architecture: Architecture, seq_len: int) -> float:
    return architecture.flop_per_token(seq_len)


def _rate(device: DeviceSpec, compute: str) -> float:
    measured = device.measured_flops_per_s.get(compute, 0.0)
    peak = device.peak_flops_per_s.get(compute) or max(device.peak_flops_per_s.values(), default=1e12)
    return measured * _SHARE_OF_MEASURED or peak * _SHARE_OF_PEAK


def _between_s(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> float:
    """Of one layer and micro-batch, there and back: collectives that wait for compute and that compute waits for."""
    tokens = candidate.micro_batch * candidate.seq_len / candidate.context
    wide = 2.0 if candidate.numerics.compute not in ("fp32", "tf32") else 4.0
    spent = 0.0
    if candidate.tensor > 1:
        passes = 8 if candidate.checkpointing != "full" else 12
        size = tokens * architecture.d_model * wide
        spent += passes * _collective_s(cluster, "all_gather", size, candidate.tensor, 1)
    if candidate.context > 1:
        size = 2 * tokens * candidate.context * architecture.kv_width / candidate.tensor * wide
        spent += 1.5 * _collective_s(cluster, "all_gather", size, candidate.context, candidate.tensor)
    if candidate.expert > 1:
        size = tokens * architecture.top_k * architecture.d_model * wide / candidate.tensor * candidate.expert
        spent += 4 * _collective_s(cluster, "all_to_all", size, candidate.expert, candidate.tensor)
    return spent


def _data_s(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> tuple[float, float]:
    """Communication of parameters and gradients: with every micro-batch, and once a step."""
    held = counted_parameters(architecture)[0] / (candidate.tensor * candidate.pipeline * candidate.expert)
    kinds = candidate.numerics
    used = kinds.cast_bytes or kinds.parameter_bytes
    stride = candidate.tensor
    over = candidate.shard * candidate.context
    gather = _collective_s(cluster, "all_gather", held * used, over, stride)
    scatter = _collective_s(cluster, "reduce_scatter", held * kinds.reduce_bytes, over, stride)
    across = _all_reduce_s(
        cluster,
        held * kinds.reduce_bytes / over,
        candidate.replicate * (1 if over > 1 else candidate.context),
        stride * over,
    )
    if candidate.zero_stage == 3:
        return 2 * gather + scatter, across
    if candidate.zero_stage == 2:
        return scatter, gather + across
    if candidate.zero_stage == 1:
        return 0.0, scatter + across + 2 * gather
    everyone = candidate.data * candidate.context
    return 0.0, _all_reduce_s(cluster, held * kinds.reduce_bytes, everyone, stride)


def _optimizer_s(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> float:
    held = counted_parameters(architecture)[0] / (candidate.tensor * candidate.pipeline * candidate.expert)
    own = held / candidate.sharded_over
    kinds = candidate.numerics
    moved = 2 * (kinds.parameter_bytes + kinds.optimizer_bytes + kinds.master_bytes) + kinds.gradient_bytes
    return own * moved / (cluster.device.measured_memory_bytes_per_s or 0.8 * cluster.device.memory_bytes_per_s)


def _all_reduce_s(cluster: Cluster, size: float, ranks: int, stride: int) -> float:
    return 2 * _collective_s(cluster, "all_reduce", size, ranks, stride)


def _collective_s(cluster: Cluster, kind: str, size: float, ranks: int, stride: int) -> float:
    """``size`` of the whole tensor, passed once around."""
    if ranks <= 1:
        return 0.0
    bandwidth, latency = _bus(cluster.inside, kind), cluster.inside.latency_s
    if ranks * stride > cluster.per_node:
        beside = max(1, min(ranks, cluster.per_node // stride))
        bandwidth = min(bandwidth, beside * _SHARE_OF_LINK * cluster.between.bytes_per_s) or bandwidth
        latency += cluster.between.latency_s
    return (ranks - 1) / ranks * size / bandwidth + latency * 4


def _bus(link: Link, kind: str) -> float:
    return link.measured_bus_bytes_per_s.get(kind) or _SHARE_OF_LINK * link.bytes_per_s or 1e9
