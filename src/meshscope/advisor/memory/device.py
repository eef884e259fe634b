"""From what tensors take to what the device must have: slack, the context, NCCL's buffers, and the verdict."""

from __future__ import annotations

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import Fit
from meshscope.advisor.memory.habits import is_megatron
from meshscope.advisor.memory.parts import GIB, Part, summed
from meshscope.advisor.memory.peak import Peak

_SLACK = (1.040, 1.010, 1.085)
"""Reserved / allocated: median, 5 % and 95 % over 43 published pairs on B200 (Megatron Core)."""
_SLACK_ELSEWHERE = (1.050, 1.010, 1.180)
"""Of stacks that let the allocator's segments be of a fixed size, as it has them by default: assumed, nobody printed
pairs. Wider, as what was freed is reused only by what fits into it."""
_GROWING = ("megatron", "nemo", "titan")
"""Stacks whose recipes let segments grow (``expandable_segments``), or allocate large buffers once."""

_CONTEXT = (0.6, 0.45, 1.2)
"""GiB of the CUDA context and kernels: 0.47 loaded lazily to 0.92 eagerly on A100, more before torch 2
(stas00 ml-engineering, training/performance)."""

_NCCL_PER_GROUP = (0.35, 0.1, 0.9)
"""GiB per communicator of more than one rank (same chapter: 0.55 to 2.0 GiB after the first barrier, all in all)."""

_POOL_FRAC = 0.75
"""Of a GPU's memory, that JAX takes at the start (docs.jax.dev, GPU memory allocation)."""


def reserved(allocated: Figure, found: Peak, candidate: Candidate, cluster: Cluster) -> Figure:
    """With what the allocator holds and cannot use: what other streams freed, the hole that half-wide logits leave
    between wider tensors, and its slack."""
    if _is_host(cluster):
        return allocated
    held = [part.figure for part in found.held if candidate.framework == "torch"]
    if candidate.framework == "torch" and not is_megatron(candidate) and found.moment == "loss":
        held += [_hole(part) for part in found.parts if part.category == "logits"]
    value, low, high = _slack(candidate)
    where = (
        f"allocator's slack: {100 * value - 100:.3g} % of allocated, {100 * low - 100:.3g} to {100 * high - 100:.3g} %"
    )
    slack = Figure(allocated.value * (value - 1), allocated.value * (low - 1), allocated.value * (high - 1),
                   "interpolated", where)  # fmt: skip
    return summed([allocated, *held, slack], "analytic", where)


def _slack(candidate: Candidate) -> tuple[float, float, float]:
    return _SLACK if any(name in candidate.stack.lower() for name in _GROWING) else _SLACK_ELSEWHERE


def _hole(part: Part) -> Figure:
    """Logits in bf16 are 2 of the 12 bytes that the loss takes; the fp32 tensors made later do not fit in their place.
    Where segments cannot grow, the hole may be as large as one fp32 tensor."""
    size = part.size_bytes / 6
    return Figure(size, 0.0, 2 * size, "analytic", "hole left by the logits")


def used(reserved: Figure, candidate: Candidate, cluster: Cluster) -> Figure:
    """With what is outside of the allocator."""
    if _is_host(cluster):
        return reserved
    context = _gib(_CONTEXT, 1, "CUDA context and kernels")
    nccl = _gib(_NCCL_PER_GROUP, _groups(candidate), "NCCL's buffers per communicator")
    return summed([reserved, context, nccl], "analytic", "reserved, CUDA context, NCCL's buffers")


def _gib(bounds: tuple[float, float, float], many: float, where: str) -> Figure:
    value, low, high = (each * many * GIB for each in bounds)
    return Figure(value, low, high, "interpolated", where)


def _groups(candidate: Candidate) -> int:
    sizes = (candidate.replicate, candidate.shard * candidate.context, candidate.tensor, candidate.pipeline,
             candidate.context, candidate.expert)  # fmt: skip
    return sum(size > 1 for size in sizes)


def limit_bytes(cluster: Cluster) -> float:
    """What a process can have of the device; where nobody said, 1.5 % less than is printed on it (ECC, the driver)."""
    return cluster.device.usable_bytes or 0.985 * cluster.device.memory_bytes


def fit(used: Figure, candidate: Candidate, cluster: Cluster) -> Fit:
    """Fits where the upper bound does, in JAX's pool where there is one; does not where not even the lower does."""
    limit = limit_bytes(cluster)
    pool = _POOL_FRAC * limit if candidate.framework == "jax" and _has_pool(cluster) else limit
    if used.high <= pool:
        return Fit.FITS
    return Fit.DOES_NOT if used.low > limit else Fit.TOO_CLOSE


def _has_pool(cluster: Cluster) -> bool:
    return "tpu" not in cluster.device.name.lower() and not _is_host(cluster)


def _is_host(cluster: Cluster) -> bool:
    return cluster.device.name.lower().startswith("cpu")
