"""Every frozen constant of the time model, in one place, each with where it came from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from meshscope.advisor.tables import table


@dataclass(frozen=True)
class Passes:
    """How often element-wise work moves a tensor through memory, forward, counted in elements read or written.

    ``width``: per token and layer, times the model's width (two norms, two residual additions, biases, dropout);
    ``heads``: times the width of queries, keys and values (positions, splitting, layout); ``plain`` and ``gated``:
    times the MLP's width (activation); ``scores``: times the scores, where they reach memory; ``logits``: times the
    logits (of 2 bytes); ``routing``: times the width of what is routed. ``backward``: how much more the backward pass
    moves.
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


# Counted from the kernels of each kind of block, in elements of 2 bytes. An addition reads twice and writes (3). A
# LayerNorm in one kernel reads and writes (2). RMSNorm written out casts to fp32, squares, multiplies, casts back and
# scales (10 to 13); rotary positions written out cast, multiply and cast back (8 to 10); SiLU and the product with the
# gate move 5, GELU 2. Fused by hand: norm with the residual 4 to 5, positions 3, SwiGLU 3 to 4. Loss: eager casts the
# logits to fp32 and takes a log-softmax (4 + 8 + 4 bytes, in each direction), fused kernels pass once or twice.
PASSES = {
    "eager": Passes(11.0, 2.0, 2.0, 5.0, 8.0, 6.0, 8.0, 1.6, 20),
    "eager rms": Passes(24.0, 8.0, 2.0, 6.0, 8.0, 8.0, 8.0, 1.6, 40),
    "fused": Passes(10.0, 3.0, 3.0, 4.0, 4.0, 5.0, 8.0, 1.6, 12),
    "compiled": Passes(9.0, 3.0, 2.5, 4.0, 6.0, 5.0, 8.0, 1.6, 8),
}


@dataclass(frozen=True)
class Speed:
    """What a stack makes of a device, beside the bare costs of operations.

    Factors on durations: ``matmul``; ``narrow`` of products in fp8 or fp4, ``rowwise`` of those with a scale per row on
    top; ``mixture`` of experts' products and of sorting for them; ``attention``, ``ring`` on top where keys and values
    go round; ``memory_bound``, ``collective``, ``optimizer``; ``contention`` of compute beside a collective.
    ``launch_s`` is the host's per kernel, ``tail_s`` comes once per step beside the model, ``jitter_frac`` of a step is
    how late the slowest of n ranks is, times √(2 ln n). ``spread_frac``: 90 % of runs take no longer by more than that,
    and are no faster by more.
    """

    matmul: float = 1.0
    narrow: float = 1.0
    rowwise: float = 1.0
    mixture: float = 1.0
    attention: float = 1.0
    ring: float = 1.0
    memory_bound: float = 1.0
    collective: float = 1.0
    optimizer: float = 1.0
    launch_s: float = 7e-6
    contention: float = 1.1
    tail_s: float = 0.01
    jitter_frac: float = 0.004
    spread_frac: float = 0.15


PRIORS = {
    "matmul": 1.1,
    "narrow": 1.2,
    # Llama-3 8B on 8 H100: 5760 tokens/s in bf16, 6420 with a scale per row, 7186 with one per tensor (torchtitan,
    # commit 7a04053); products in fp8 are 28 % of the last.
    "rowwise": 1.43,
    "mixture": 1.2,
    "attention": 1.1,
    "ring": 1.15,
    "memory_bound": 1.1,
    "collective": 1.0,
    "optimizer": 1.0,
    "launch_s": 7e-6,
    "contention": 1.1,
    "tail_s": 0.008,
    "jitter_frac": 0.004,
}
"""Where nothing was fitted: what is expected before any run is seen."""

_STACK_PRIORS = {
    # One program is one launch, and the next step's is queued before this one ends.
    "xla.tail_s": 0.25,
    "xla.launch_s": 0.25,
}

ATTENTION = {
    # FlashAttention-2 is 1.3 to 1.5 times as fast as FlashAttention in Triton (arXiv 2307.08691, section 4.1).
    ("triton", "ampere"): 1.4,
    ("triton", "hopper"): 1.4,
    # On Hopper, cuDNN and FlashAttention-3 are 1.5 to 2 times as fast as FlashAttention-2 (arXiv 2407.08608, § 4).
    ("cudnn", "hopper"): 0.65,
}
"""Kernels beside FlashAttention-2, which the cost table is of, by family of devices: factors on its time."""

FITTED: dict[str, float] = {name: float(value) for name, value in table("time")["fitted"].items()}
"""``all``, ``device.FAMILY`` and ``stack.FAMILY``, each with the constant's name: factors that multiply. Fitted
together to published runs, as the head of ``data/time.toml`` says."""


SPREAD_FRAC = {
    "usual": 0.095,
    "narrow": 0.085,
    "mixture": 0.2,
    "stack": 0.15,
    "device": 0.15,
    "exposed": 0.3,
}
"""Half widths of intervals that 90 % of runs lie in, which add up as squares: of every step; of products in fp8 or
fp4; of mixtures of experts; of software and of devices that nothing was fitted to; of what is exposed, times its share
of the step. The first three are quantiles of the residuals of the fit (0.08 of dense models in 16 bits, 0.15 in fp8,
0.22 of mixtures), a little wider, as for sources that were left out of it (``tests/benchmarks/advisor.py`` prints
both)."""


def speed(stack: str, device: str, fitted: Mapping[str, float] = FITTED) -> Speed:
    """Of a family of stacks on a family of devices: the prior times what was fitted of all, the device and the stack. A
    family that nothing was fitted to has the others' constants, and a wider interval."""
    found = {
        name: prior
        * _STACK_PRIORS.get(f"{stack}.{name}", 1.0)
        * fitted.get(f"all.{name}", 1.0)
        * fitted.get(f"device.{device}.{name}", 1.0)
        * fitted.get(f"stack.{stack}.{name}", 1.0)
        for name, prior in PRIORS.items()
    }
    kinds = ["usual"]
    if f"stack.{stack}.matmul" not in fitted:
        kinds.append("stack")
    if f"device.{device}.matmul" not in fitted:
        kinds.append("device")
    return Speed(**found, spread_frac=math.hypot(*(SPREAD_FRAC[kind] for kind in kinds)))


def spread_frac(known: Speed, *, is_mixture: bool, is_narrow: bool, exposed_frac: float) -> float:
    """The half width of a step's interval, as a share of the step."""
    parts = [known.spread_frac, SPREAD_FRAC["exposed"] * exposed_frac]
    if is_mixture:
        parts.append(SPREAD_FRAC["mixture"])
    if is_narrow:
        parts.append(SPREAD_FRAC["narrow"])
    return math.hypot(*parts)


ASSUMED_SPREAD_FRAC = {
    "shape": 0.2,
    "layout": 0.4,
    "micro-batch": 0.08,
    "checkpointing": 0.1,
    "network": 0.1,
    "virtual stages": 0.1,
    "zero stage": 0.1,
    "precision": 0.2,
    "vocabulary": 0.05,
}
"""By how much a step may take longer for what its row does not state, by what `published` had to assume."""
