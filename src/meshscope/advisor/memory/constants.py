"""Every frozen constant of the memory model, in one place, each with where it came from.

None is fitted to a run of its own. Published runs were in view for two of them: the allocator's slack (quantiles over
pairs that were printed) and how many workspaces Transformer Engine has (their size is in its source; six of them leave
the least over on the four runs of Llama that this was looked at with).
"""

from __future__ import annotations

MIB, GIB = 2**20, 2**30

Bounds = tuple[float, float, float]
"""The usual value, and what 95 % of cases are above and below."""

ADAM_8BIT_BYTES = 2.0 + 2 * 4 / 256
"""Two moments of a byte and an fp32 scale per block of 256 (bitsandbytes, functional.py: optimizer blockwise)."""

MOMENTS_KEPT = {
    "adamw": 2.0, "adam": 2.0, "adamax": 2.0, "lamb": 2.0, "sophia": 2.0, "sgd": 0.0, "sgd-momentum": 1.0, "lion": 1.0,
    "adagrad": 1.0, "rmsprop": 1.0, "muon": 1.0, "adam8bit": 2.0, "adafactor": 0.0,
}  # fmt: skip
"""Numbers an optimizer keeps per parameter, of the size of one of Adam's. Muon: of matrices within layers; the tables
have Adam's two (github KellerJordan/Muon, README). Adafactor without momentum: rows and columns (arXiv 1804.04235)."""

WORKSPACE_BYTES = 32 * MIB
"""cuBLAS's, one per handle and stream on Hopper and later (torch's CUDABlas.cpp)."""
WORKSPACES, WORKSPACES_OF_MEGATRON = 2, 6
"""The main stream's and one beside it; Transformer Engine has one of its own and four more for grouped products (its
pytorch/module/base.py)."""

DEEPSPEED_LIVE = 1e9
"""``stage3_max_live_parameters`` (deepspeed.ai, docs/config-json, ZeRO options)."""
DEEPSPEED_BUCKET = 5e8
"""Elements of ``reduce_bucket_size``, ``allgather_bucket_size`` and ``stage3_prefetch_bucket_size`` (same page)."""

LOSS_PIECES = 8
"""Of a loss that is computed in pieces (torchtune's default number of chunks)."""

SLACK: Bounds = (1.040, 1.010, 1.085)
"""Reserved / allocated: median, 5 % and 95 % over 43 published pairs on B200 (SimuMax's, Megatron Core)."""
SLACK_ELSEWHERE: Bounds = (1.050, 1.010, 1.180)
"""Of stacks that leave the allocator's segments at a fixed size, as is its default: assumed, nobody printed pairs.
Wider, as what was freed is reused only by what fits into it."""

CONTEXT_GIB: Bounds = (0.6, 0.45, 1.4)
"""CUDA context and kernels: 0.47 loaded lazily to 0.92 eagerly on A100, up to 1.8 before torch 2 (stas00
ml-engineering, training/performance)."""
NCCL_GIB: Bounds = (0.35, 0.1, 0.9)
"""Per communicator of more than one rank (same chapter: 0.55 to 2.0 after the first barrier, all in all)."""

HOST_PROCESS_GIB: Bounds = (0.36, 0.25, 0.70)
"""A rank on a CPU: the interpreter and a framework's libraries (370 MB with torch 2.13 and gloo, measured; more with
XLA's compiler)."""
TPU_RUNTIME_GIB: Bounds = (0.3, 0.0, 0.6)
"""What is not there for a program on a TPU: assumed."""

JAX_POOL_FRAC = 0.75
"""Of a GPU's memory, that JAX takes at the start (docs.jax.dev, GPU memory allocation)."""
USABLE_FRAC = 0.985
"""Of what is printed on a device, where nobody said what a process can have of it (error correction, the driver)."""

ACTIVATIONS: dict[str, tuple[float, float]] = {
    "megatron": (0.92, 1.08),
    "jax": (0.70, 1.35),
    "compiled": (0.75, 1.20),
    "eager": (0.85, 1.20),
}
"""Bounds of what a layer keeps, as parts of what is counted. Eager torch: models of the same shape differ in how norms,
positions and gates are written, by −8 to +15 % of transformers' Llama, whose saved tensors are counted. Compilers
decide themselves what to compute again. Mixtures have more on either side: `UNEVEN_EXPERTS`."""
UNEVEN_EXPERTS = (0.10, 0.25)
"""Off and on the bounds: how tokens spread over experts, and whether a step pads them."""

ASSUMED_SPREAD_FRAC = {
    "shape": 0.20,
    "layout": 0.50,
    "micro-batch": 0.35,
    "virtual stages": 0.05,
    "zero stage": 0.40,
    "precision": 0.25,
    "vocabulary": 0.05,
}
"""By how much memory may be more than predicted for what a run does not state: a judgement of how much of a usual run
each of them moves. What is computed again is bounded by counting it both ways instead."""
