"""Every frozen constant of the time model, in one place, each with where it came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Passes:
    """How often element-wise work moves a tensor through memory, forward, counted in elements read or written.

    ``width``: per token and layer, times the model's width (two norms, two residual additions, biases, dropout);
    ``heads``: times the width of queries, keys and values (positions, splitting, layout); ``plain`` and ``gated``: times
    the MLP's width (activation); ``scores``: times the scores, where they reach memory; ``logits``: times the logits
    (of 2 bytes); ``routing``: times the width of what is routed. ``backward``: how much more the backward pass moves.
    ``launches``: kernels per layer.
    """

    width: float
    heads: float
    plain: float
    gated: float
    scores: float
    logits: float
    routing: float
    backward: float
    launches: int


# Counted from the kernels of each kind of block. Eager: a norm reads and writes (2) and computes in fp32 on the way (2
# to 4 more), an addition reads twice and writes (3); positions (rotary) multiply, turn and add (6); SiLU and the product
# with the gate move 5, GELU 2. Fused: norm with the residual 4, positions 2, SwiGLU 3. Loss: eager casts the logits to
# fp32 and takes a log-softmax (4 + 8 + 4 bytes, in each direction), fused kernels pass once or twice.
PASSES = {
    "eager": Passes(14.0, 4.0, 2.0, 5.0, 8.0, 8.0, 8.0, 1.6, 20),
    "fused": Passes(8.0, 2.0, 2.0, 3.0, 4.0, 4.0, 6.0, 1.5, 12),
    "compiled": Passes(8.0, 2.0, 2.0, 3.0, 6.0, 4.0, 8.0, 1.5, 8),
}


@dataclass(frozen=True)
class Speed:
    """What a stack makes of a device, beside the bare costs of operations: factors on durations (``matmul``,
    ``attention``, ``memory_bound``, ``collective``; ``wide_matmul`` of products that stay in bf16 where others go fp8),
    ``launch_s`` of the host per kernel, ``contention`` of compute beside a collective, ``tail_s`` per step beside the
    model, ``jitter_frac`` of a step by which the slowest of n ranks is late, times √(2 ln n); ``spread_frac`` is the
    half width of the interval that 90 % of runs lie in."""

    matmul: float = 1.0
    wide_matmul: float = 1.0
    attention: float = 1.0
    memory_bound: float = 1.0
    collective: float = 1.0
    optimizer: float = 1.0
    launch_s: float = 4e-6
    contention: float = 1.1
    tail_s: float = 0.01
    jitter_frac: float = 0.004
    spread_frac: float = 0.15


def speed(family: str, device: str) -> Speed:
    """Of a family of stacks on a family of devices."""
    return Speed()
