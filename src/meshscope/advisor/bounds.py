"""The least that a candidate needs of a device, in a few multiplications: what cannot fit is told before more is done.

These are bounds, no forecasts: each term is below what any of the formulas of the memory model gives.
"""

from __future__ import annotations

from functools import lru_cache

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate

_ACTIVATIONS_FRAC = 0.6
"""Of the bytes that a layer keeps by its published formula (12 h + 4 h·kv/a + 6 f per token of a gated MLP, in 16 bits,
flash attention, Megatron with sequence parallelism): recompiled code may keep fewer, none is known to keep so few."""
_SELECTIVE_FRAC = 0.5


def least_bytes(architecture: Architecture, candidate: Candidate) -> float:
    """Of the device that needs most, at least: its share of the state, and the activations it has to hold."""
    return _state(architecture, candidate) + _activations(architecture, candidate)


def _state(architecture: Architecture, candidate: Candidate) -> float:
    """The mean over stages, which the largest is not below."""
    split = candidate.tensor * candidate.pipeline
    everything, of_experts = counted_parameters(architecture)
    plain = (everything - of_experts) / split * _bytes_each(candidate, candidate.sharded_over)
    if not of_experts:
        return plain
    over = max(1.0, candidate.sharded_over / candidate.expert)
    wide = candidate.pipeline * candidate.expert * (candidate.tensor if candidate.is_expert_over_tensor else 1)
    return plain + of_experts / max(split, wide) * _bytes_each(candidate, over)


@lru_cache(maxsize=16)
def counted_parameters(architecture: Architecture) -> tuple[int, int]:
    """All of them, and those of experts among them: counted once for the thousands of candidates of a model."""
    of_experts = architecture.mixture_layers * architecture.experts * architecture.mlp_parameters(architecture.d_ff)
    return architecture.parameters, of_experts


def _bytes_each(candidate: Candidate, over: float) -> float:
    """Per parameter: of what its ZeRO stage shards only a share."""
    kinds = candidate.numerics
    parts = ((3, kinds.parameter_bytes), (2, kinds.gradient_bytes), (1, kinds.optimizer_bytes + kinds.master_bytes))
    return sum(size / over if candidate.zero_stage >= stage else size for stage, size in parts)


def _activations(architecture: Architecture, candidate: Candidate) -> float:
    tokens = candidate.micro_batch * candidate.seq_len / candidate.context
    wide = 2 if candidate.numerics.compute not in ("fp32", "tf32") else 4
    held = min(candidate.pipeline, candidate.accumulate) if candidate.schedule != "gpipe" else candidate.accumulate
    layers = architecture.layers / candidate.pipeline * (held if candidate.pipeline > 1 else 1)
    return tokens * wide / candidate.tensor * layers * _kept_width(architecture, candidate)


def _kept_width(architecture: Architecture, candidate: Candidate) -> float:
    """Numbers per token and layer."""
    if candidate.checkpointing == "full":
        return architecture.d_model
    d_ff = architecture.d_ff * (architecture.top_k if architecture.is_mixture else 1)
    kept = 6 * architecture.d_model + 2 * architecture.kv_width + (3 if architecture.is_gated else 2) * d_ff
    return kept * _ACTIVATIONS_FRAC * (_SELECTIVE_FRAC if candidate.checkpointing == "selective" else 1.0)
