"""What is asked of the advisor: a model, a cluster, the batch, and which ways of training come into question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Checkpointing, Numerics
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.multipliers import NEUTRAL, Multipliers
from meshscope.advisor.numerics import AMP, BF16_MIXED, FP16, FP32, MEGATRON, numerics

Framework = Literal["torch", "jax"]

EVERY_CHECKPOINTING: tuple[Checkpointing, ...] = ("none", "selective", "full")
AS_USUAL = ""
"""A precision that is each strategy's usual one."""

_TOKENS_PER_DEVICE = 16_384
_MOST_TOKENS_PER_STEP = 16 * 2**20
"""The largest batch that Llama 3 405B was trained with: 16 M tokens (arXiv 2407.21783, section 3.4.1)."""
_HALF = ("bf16", "fp16")


@dataclass(frozen=True)
class Question:
    """``global_batch`` samples of ``seq_len`` tokens make a step on all devices together, whatever the strategy.

    ``precision`` is a name of `numerics`, or empty: each strategy's usual one. ``strategies`` are words of which a
    strategy must have one (none: every strategy). ``micro_batch`` 0: whatever suits. ``software`` is a name of
    `stacks`, for all of them (empty: torchtitan, or JAX). ``most_tensor`` is the widest tensor parallelism that comes
    into question, 0 for as many as one node (or NVLink domain) has devices.
    """

    architecture: Architecture
    cluster: Cluster
    seq_len: int
    global_batch: int
    precision: str = AS_USUAL
    frameworks: tuple[Framework, ...] = ("torch",)
    strategies: tuple[str, ...] = ()
    micro_batch: int = 0
    checkpointing: tuple[Checkpointing, ...] = EVERY_CHECKPOINTING
    is_compiled: bool = True
    software: str = ""
    is_flash: bool = True
    most_tensor: int = 0
    multipliers: Multipliers = NEUTRAL

    @property
    def tokens_per_step(self) -> int:
        return self.global_batch * self.seq_len

    @property
    def tokens_per_device(self) -> float:
        return self.tokens_per_step / self.cluster.devices


def usual_batch(cluster: Cluster, seq_len: int) -> tuple[int, str]:
    """Samples in a step where nobody says, and a sentence that says so: 16 384 tokens for each device, and no more
    together than the largest model was trained with."""
    each = max(1, _TOKENS_PER_DEVICE // seq_len)
    most = max(1, _MOST_TOKENS_PER_STEP // seq_len)
    if each * cluster.devices > most:
        return most, (
            f"No batch was given: {most:,} samples of {seq_len:,} tokens, 16 M tokens in a step, the most that "
            "Llama 3 405B was trained with"
        )
    chosen = each * cluster.devices
    return chosen, f"No batch was given: {chosen:,} samples of {seq_len:,} tokens, {each * seq_len:,} on each device"


def half_type(cluster: Cluster) -> str:
    """The 16-bit type that the device multiplies in; "" where it has none, or is a CPU, which is slower in it."""
    if cluster.device.family == "cpu":
        return ""
    return next((name for name in _HALF if cluster.device.peak_flops_per_s.get(name)), "")


def numerics_of(question: Question, *, framework: Framework, zero_stage: int, is_megatron: bool) -> Numerics:
    """As the question has it; else what the strategy is usually trained in on this device."""
    if question.precision:
        return numerics(question.precision)
    half = half_type(question.cluster)
    if half != "bf16":
        return FP16 if half else FP32
    if is_megatron:
        return MEGATRON
    return AMP if framework == "torch" and zero_stage <= 1 else BF16_MIXED
