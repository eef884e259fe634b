"""The least that a candidate needs of a device, in a few multiplications: what cannot fit is told before more is done.

These are bounds, no forecasts: each term is below what any of the formulas of the memory model gives.
"""

from __future__ import annotations

from functools import lru_cache

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate

_ACTIVATIONS_FRAC = 0.4
"""Of the bytes that a layer keeps by its published formula (12 h + 4 h·kv/a + 6 f per token of a gated MLP, in 16 bits,
flash attention, Megatron with sequence parallelism): recompiled code may keep fewer, none is known to keep so few."""
_SELECTIVE_FRAC = 0.5
_FULL_FRAC = 0.7
"""Of a layer's input, which is all that full checkpointing keeps: forecasts reach down to less than it."""


def least_bytes(architecture: Architecture, candidate: Candidate) -> float:
    """Of the device that needs most, at least: its share of the state, and the activations that it has to hold before
    there are gradients, or the gradients once those are gone."""
    kept = _state(architecture, candidate, gradients=False)
    return max(kept + _activations(architecture, candidate), _state(architecture, candidate, gradients=True))


def _state(architecture: Architecture, candidate: Candidate, *, gradients: bool) -> float:
    """The mean over stages, which the largest is not below."""
    split = candidate.tensor * candidate.pipeline
    everything, of_experts = counted_parameters(architecture)
    each = _bytes_each(candidate, candidate.sharded_over, gradients=gradients)
    plain = (everything - of_experts) / split * each
    if not of_experts:
        return plain
    over = max(1.0, candidate.sharded_over / candidate.expert)
    spread = candidate.expert if not candidate.is_expert_over_tensor else max(1, candidate.expert // candidate.tensor)
    return plain + of_experts / (split * spread) * _bytes_each(candidate, over, gradients=gradients)


@lru_cache(maxsize=16)
def counted_parameters(architecture: Architecture) -> tuple[int, int]:
    """All of them, and those of experts among them: counted once for the thousands of candidates of a model."""
    of_experts = architecture.mixture_layers * architecture.experts * architecture.mlp_parameters(architecture.d_ff)
    return architecture.parameters, of_experts


def _bytes_each(candidate: Candidate, over: float, *, gradients: bool) -> float:
    """Per parameter: of what its ZeRO stage shards only a share. Stage 2 keeps what it has gathered, in the type that
    it computes in."""
    kinds, stage = candidate.numerics, candidate.zero_stage
    trained = kinds.parameter_bytes / over if stage == 3 else kinds.parameter_bytes
    if stage == 2 and kinds.cast_bytes:
        trained = kinds.parameter_bytes / over + kinds.cast_bytes
    moments = (kinds.optimizer_bytes + kinds.master_bytes) / (over if stage >= 1 else 1)
    return trained + moments + (kinds.gradient_bytes / (over if stage >= 2 else 1) if gradients else 0.0)


def _activations(architecture: Architecture, candidate: Candidate) -> float:
    tokens = candidate.micro_batch * candidate.seq_len / candidate.context
    wide = 2 if candidate.numerics.compute not in ("fp32", "tf32") else 4
    held = min(candidate.pipeline, candidate.accumulate) if candidate.schedule != "gpipe" else candidate.accumulate
    layers = architecture.layers / candidate.pipeline * (held if candidate.pipeline > 1 else 1)
    return tokens * wide / candidate.tensor * layers * _kept_width(architecture, candidate)


def _kept_width(architecture: Architecture, candidate: Candidate) -> float:
    """Numbers per token and layer."""
    if candidate.checkpointing == "full":
        return architecture.d_model * _FULL_FRAC
    d_ff = architecture.d_ff * (architecture.top_k if architecture.is_mixture else 1)
    kept = 6 * architecture.d_model + 2 * architecture.kv_width + (3 if architecture.is_gated else 2) * d_ff
    return kept * _ACTIVATIONS_FRAC * (_SELECTIVE_FRAC if candidate.checkpointing == "selective" else 1.0)
