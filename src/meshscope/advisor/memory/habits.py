"""What the software keeps in memory, beyond what the mathematics asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.memory.constants import ACTIVATIONS


@dataclass(frozen=True)
class Habits:
    """``is_fused``: gated MLPs keep no intermediate (Transformer Engine, a compiler); ``fuses_norms``: nor do
    norms (theirs; torch's own RMSNorm since 2.9 and torchtitan's before).
    ``recomputes_cheap``: what a compiler computes again in the backward pass rather than keep (norms, activations).
    ``is_autocast``: the stream between layers stays fp32. ``repeats_kv``: keys and values are copied once per query
    head. ``keeps_gradients``: gradient buffers live from step to step, else they are made in each backward pass.
    ``may_zero_gradients``: they may be filled with zeros after a step rather than freed, as torch did before 2.0.
    ``stands_in_gradients``: gradients that were added elsewhere leave a stand-in of the weight's shape.
    ``gathers_are_kept``: what tensor parallelism gathers before a product is kept for its backward pass.
    ``has_dropout``: masks of one byte an element. ``is_gated``: as the model's MLPs are.
    ``activations_least_frac`` and ``activations_most_frac`` bound what is saved per layer, of the estimate.
    """

    is_fused: bool
    fuses_norms: bool
    recomputes_cheap: bool
    is_autocast: bool
    repeats_kv: bool
    keeps_gradients: bool
    may_zero_gradients: bool
    stands_in_gradients: bool
    gathers_are_kept: bool
    has_dropout: bool
    is_gated: bool
    activations_least_frac: float
    activations_most_frac: float


_FUSED = ("nanotron", "apex")
"""Stacks with fused kernels of their own."""


_FREES = ("titan", "composer")
"""Stacks that are known to free gradients after a step."""


def is_megatron(candidate: Candidate) -> bool:
    """Megatron Core, and what is built on it."""
    return any(name in candidate.stack.lower() for name in ("megatron", "nemo", "bridge"))


def is_nemo(candidate: Candidate) -> bool:
    """NeMo and Megatron Bridge, by whose recipes Megatron Core is run."""
    return any(name in candidate.stack.lower() for name in ("nemo", "bridge"))


def is_deepspeed(candidate: Candidate) -> bool:
    return "deepspeed" in candidate.stack.lower()


def numerics(candidate: Candidate) -> Numerics:
    """As the stack keeps them. Megatron, DeepSpeed and nanotron train on half-wide parameters beside an fp32 copy
    in the optimizer, also where the mixture is stated as fp32 parameters that are cast."""
    said = candidate.numerics
    if "composer" in candidate.stack and said.parameter_bytes == 2 and not said.master_bytes:
        # What it calls pure is computed and reduced in bf16; the shards stay fp32 (llm-foundry, mixed_precision: PURE).
        return replace(
            said, parameter_bytes=4.0, gradient_bytes=4.0, optimizer_bytes=8.0, cast_bytes=2.0, reduce_bytes=2.0
        )
    keeps_two = is_megatron(candidate) or is_deepspeed(candidate) or "nanotron" in candidate.stack
    if not keeps_two or not said.cast_bytes or said.master_bytes:
        return said
    gradient = said.cast_bytes if is_deepspeed(candidate) else said.gradient_bytes
    return replace(
        said,
        parameter_bytes=said.cast_bytes,
        master_bytes=said.parameter_bytes,
        gradient_bytes=gradient,
        cast_bytes=0.0,
    )


def is_autocast(candidate: Candidate) -> bool:
    """torch.autocast over parameters that are whole: FSDP and DeepSpeed cast the weights instead, and with them the
    stream between layers."""
    if candidate.framework != "torch" or candidate.zero_stage >= 2 or not candidate.numerics.cast_bytes:
        return False
    return not (is_megatron(candidate) or is_deepspeed(candidate))


def has_dropout(architecture: Architecture, candidate: Candidate) -> bool:
    """The models of the time of dropout have biases and no gate (GPT-2, GPT-3, BERT); those since have neither, nor do
    NeMo's recipes drop anything."""
    return architecture.has_biases and not architecture.is_gated and not is_nemo(candidate)


def _written(candidate: Candidate) -> str:
    if is_megatron(candidate):
        return "megatron"
    if candidate.framework == "jax":
        return "jax"
    return "compiled" if candidate.is_compiled else "eager"


def habits(architecture: Architecture, candidate: Candidate) -> Habits:
    """Of the stack that the candidate names, or of plain torch or JAX where it names none that is known."""
    megatron, is_jax = is_megatron(candidate), candidate.framework == "jax"
    is_compiled = is_jax or (candidate.is_compiled and not megatron)
    is_fused = megatron or is_compiled or any(name in candidate.stack for name in _FUSED)
    least, most = ACTIVATIONS[_written(candidate)]
    return Habits(
        is_fused=is_fused,
        fuses_norms=is_fused or "titan" in candidate.stack,
        recomputes_cheap=is_compiled,
        is_autocast=is_autocast(candidate),
        repeats_kv=not (megatron or is_compiled),
        keeps_gradients=megatron or (candidate.is_bucket_view and not candidate.zero_stage),
        may_zero_gradients=not (megatron or is_jax) and not any(name in candidate.stack for name in _FREES),
        stands_in_gradients=megatron and "2021" not in candidate.stack,
        gathers_are_kept=not (megatron or is_jax),
        has_dropout=has_dropout(architecture, candidate),
        is_gated=architecture.is_gated,
        activations_least_frac=least,
        activations_most_frac=most,
    )
