"""From what tensors take to what the device must have: slack, the context, NCCL's buffers, and the verdict."""

from __future__ import annotations

from dataclasses import replace

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.figures import Figure, Source
from meshscope.advisor.forecast import Fit, Term
from meshscope.advisor.memory import constants
from meshscope.advisor.memory.constants import GIB, Bounds
from meshscope.advisor.memory.parts import said, summed
from meshscope.advisor.memory.peak import Peak
from meshscope.advisor.memory.temporaries import WORKSPACE

_GROWING = ("megatron", "nemo", "titan")
"""Stacks whose recipes let segments grow (``expandable_segments``), or allocate large buffers once."""


def on_device(found: Peak, cluster: Cluster) -> Peak:
    """Without what only a GPU needs where there is none."""
    if not (_is_host(cluster) or _is_tpu(cluster)):
        return found
    return replace(found, parts=tuple(part for part in found.parts if part.name != WORKSPACE))


def beyond(allocated: Figure, found: Peak, candidate: Candidate, cluster: Cluster) -> tuple[Term, ...]:
    """What the allocator holds and cannot use: what other streams freed, the hole that half-wide logits leave between
    wider tensors, and its slack. XLA plans a TPU's memory ahead and a CPU gives back what is freed: nothing there."""
    if _is_host(cluster) or _is_tpu(cluster):
        return ()
    held = [part.term for part in found.held] if candidate.framework == "torch" else []
    is_growing = any(name in candidate.stack.lower() for name in _GROWING)
    bounds = constants.SLACK if is_growing else constants.SLACK_ELSEWHERE
    value, low, high = (allocated.value * (each - 1) for each in bounds)
    percent = [f"{100 * (each - 1):.3g} %" for each in bounds]
    words = f"{percent[0]} of what is allocated ({percent[1]} to {percent[2]}) = {said(value)}"
    source: Source = "interpolated" if is_growing else "assumed"
    slack = Term("allocator's slack", Figure(value, low, high, source, words), 1.0, words)
    return (*(_named(term) for term in held), slack)


def _named(term: Term) -> Term:
    return Term(f"held, not used: {term.name.replace(': ', ', ')}", term.figure, term.times, term.arithmetic)


def outside(candidate: Candidate, cluster: Cluster) -> tuple[Term, ...]:
    """What is no tensor's."""
    if _is_host(cluster):
        return (_gib("process and its libraries", constants.HOST_PROCESS_GIB, 1, "measured"),)
    if _is_tpu(cluster):
        return (_gib("TPU's runtime", constants.TPU_RUNTIME_GIB, 1, "assumed"),)
    return (
        _gib("CUDA context and kernels", constants.CONTEXT_GIB, 1, "interpolated"),
        _gib("NCCL's buffers, per communicator", constants.NCCL_GIB, _groups(candidate), "interpolated"),
    )


def together(start: Figure, terms: tuple[Term, ...], where: str) -> Figure:
    """What is known so far, and these beside it."""
    return summed([start, *(term.figure for term in terms)], "analytic", where)


def _gib(name: str, bounds: Bounds, many: int, source: Source) -> Term:
    value, low, high = (each * many * GIB for each in bounds)
    words = f"{many} × {bounds[0]:g} GiB ({bounds[1]:g} to {bounds[2]:g}) = {said(value)}"
    return Term(name, Figure(value, low, high, source, words), 1.0, words)


def _groups(candidate: Candidate) -> int:
    sizes = (candidate.replicate, candidate.shard * candidate.context, candidate.tensor, candidate.pipeline,
             candidate.context, candidate.expert)  # fmt: skip
    return sum(size > 1 for size in sizes)


def limit_bytes(cluster: Cluster) -> float:
    """What a process can have of the device."""
    return cluster.device.usable_bytes or constants.USABLE_FRAC * cluster.device.memory_bytes


def fit(used: Figure, candidate: Candidate, cluster: Cluster) -> Fit:
    """Fits where the upper bound does, in JAX's pool where there is one; does not where not even the lower does."""
    limit = limit_bytes(cluster)
    has_pool = candidate.framework == "jax" and not (_is_tpu(cluster) or _is_host(cluster))
    if used.high <= limit * (constants.JAX_POOL_FRAC if has_pool else 1.0):
        return Fit.FITS
    return Fit.DOES_NOT if used.low > limit else Fit.TOO_CLOSE


def _is_tpu(cluster: Cluster) -> bool:
    return "tpu" in cluster.device.name.lower()


def _is_host(cluster: Cluster) -> bool:
    return cluster.device.name.lower().startswith("cpu")
