"""The software that a run is made of, as far as its habits change what a step costs.

A stack is recognised by the words people name it with. What is recognised by nothing is ``torch`` or ``jax``: the
habits that most have, with the wider interval of constants that were fitted to none of its runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from meshscope.advisor.candidate import Checkpointing


@dataclass(frozen=True)
class Stack:
    """``fusion`` is how element-wise work is done: ``eager`` (a kernel per operation), ``fused`` (kernels written by
    hand: norms, activations, loss), ``compiled`` (a compiler fuses what is adjacent).

    ``is_overlapped``: whether it reduces gradients beside the backward pass unless told otherwise.
    ``hides_tensor_frac`` is the share of tensor-parallel communication that runs beside the products it belongs to;
    ``copies_gathered``: gathered parameters are copied out of the buffer that they came in (FSDP2; DeepSpeed);
    ``sends_once_per_node``: a token goes to another node once, however many of its experts are there (DeepEP);
    ``drops_padding``: samples of about the same length are put together, so that little is padded. ``usual_*`` is what
    is assumed where a run does not say.
    """

    name: str
    framework: Literal["torch", "jax"]
    family: str
    fusion: Literal["eager", "fused", "compiled"] = "eager"
    is_compiled: bool = False
    is_megatron: bool = False
    is_flash: bool = True
    attention_kernel: Literal["triton", "flash2", "cudnn"] = "flash2"
    is_sequence_parallel: bool = True
    is_overlapped: bool = True
    is_bucket_view: bool = False
    reduces_in_half: bool = False
    copies_gathered: bool = False
    has_fused_optimizer: bool = False
    has_narrow_gradients: bool = False
    sends_once_per_node: bool = False
    drops_padding: bool = False
    hides_tensor_frac: float = 0.0
    selective_recompute_frac: float = 0.0
    usual_checkpointing: Checkpointing = "none"
    usual_zero_stage: int = 0
    usual_virtual: int = 1


_TORCH = Stack("torch", "torch", "torch", usual_zero_stage=0)
_JAX = Stack("jax", "jax", "xla", fusion="compiled", is_compiled=True, usual_zero_stage=3, has_fused_optimizer=True)
_TITAN = Stack(
    "torchtitan",
    "torch",
    "fsdp2",
    copies_gathered=True,
    selective_recompute_frac=0.5,
    has_fused_optimizer=True,
    usual_zero_stage=3,
)
_MEGATRON = Stack(
    "megatron",
    "torch",
    "megatron",
    fusion="fused",
    is_megatron=True,
    # Its switches for that are off unless they are given (Megatron-LM, arguments.py).
    is_overlapped=False,
    has_fused_optimizer=True,
    usual_zero_stage=1,
)

_ENGINE = replace(_MEGATRON, name="megatron-te", family="megatron-te", attention_kernel="cudnn")

_ASYNC_FRAC, _BUFFERED_FRAC = 0.35, 0.85
"""Of tensor-parallel communication, what pipelined products hide: of torch's asynchronous tensor parallelism by what it
gains (torchtitan's asyncTP page of 2025-06: 8 to 10 % of steps of which a fourth is such communication); of Transformer
Engine's user buffers, which split every product, all but a chunk of several."""

STACKS = {
    each.name: each
    for each in (
        _TORCH,
        replace(_TORCH, name="torch-compile", fusion="compiled", is_compiled=True),
        Stack("composer", "torch", "fsdp1", attention_kernel="triton", reduces_in_half=True, has_fused_optimizer=True,
              usual_zero_stage=3),
        Stack("fsdp1", "torch", "fsdp1", reduces_in_half=True, usual_zero_stage=3),
        _TITAN,
        replace(_TITAN, name="torchtitan-async", fusion="compiled", is_compiled=True, hides_tensor_frac=_ASYNC_FRAC),
        replace(_TITAN, name="torchtitan-compile", fusion="compiled", is_compiled=True),
        Stack("apex", "torch", "ngc", fusion="fused", has_fused_optimizer=True, is_flash=False,
              drops_padding=True),
        Stack("deepspeed", "torch", "deepspeed", copies_gathered=True, reduces_in_half=True, has_fused_optimizer=True,
              usual_zero_stage=3),
        Stack("nanotron", "torch", "nanotron", fusion="fused", has_fused_optimizer=True, usual_zero_stage=1),
        _MEGATRON,
        _ENGINE,
        # Sends between stages are hidden only where stages are cut into chunks, so whoever tunes a run cuts them.
        replace(_ENGINE, name="megatron-overlap", is_overlapped=True, hides_tensor_frac=_BUFFERED_FRAC,
                usual_virtual=2),
        replace(_ENGINE, name="megatron-nemo", is_overlapped=True, hides_tensor_frac=_BUFFERED_FRAC, usual_virtual=2,
                has_narrow_gradients=True, sends_once_per_node=True),
        replace(_MEGATRON, name="megatron-2021", family="megatron-2021", is_flash=False, is_sequence_parallel=False,
                is_overlapped=False, usual_zero_stage=0),
        _JAX,
        replace(_JAX, name="maxtext", family="xla", usual_checkpointing="full", selective_recompute_frac=0.5),
        replace(_JAX, name="pax", family="xla", usual_zero_stage=0),
        replace(_JAX, name="pax-te", family="xla", usual_zero_stage=0, fusion="fused"),
    )
}  # fmt: skip
"""By name, as `Candidate.stack` has it."""

# The first that finds the framework's name wins.
_WORDS = (
    (r"composer|llm.?foundry|mosaic", "composer"),
    (r"torchtitan|titan", "torchtitan"),
    (r"nemo.?automodel", "torchtitan"),
    (r"deepspeed|gpt.?neox", "deepspeed"),
    (r"nanotron", "nanotron"),
    (r"megatron.?bridge|nemo", "megatron-nemo"),
    (r"megatron.?core|mcore|megatron.*\bte\b|megatron.*transformer.?engine", "megatron-te"),
    (r"megatron", "megatron"),
    (r"maxtext|levanter|easylm|maxdiffusion", "maxtext"),
    (r"pax|t5x|pmap", "pax"),
    (r"jax|flax|xla|haiku", "jax"),
    (r"ngc|apex|deeplearningexamples", "apex"),
    (r"fsdp ?2|fully_shard", "torchtitan"),
    (r"fsdp", "fsdp1"),
)


def stack(framework: str, notes: str = "", compiled: str = "", date: str = "", options: str = "") -> Stack:
    """The stack that these words name; ``options`` are switches that a run says it used."""
    name = next((name for pattern, name in _WORDS if re.search(pattern, framework.lower())), "torch")
    if name == "megatron" and _is_before(date, 2022):
        name = "megatron-2021"
    if name == "megatron" and re.search(r"\bte\b|transformer.?engine", notes.lower()):
        name = "megatron-te"
    if name == "megatron-te" and re.search(r"overlap", options.lower()):
        name = "megatron-overlap"
    if re.search(r"compile|inductor", compiled.lower()) and f"{name}-compile" in STACKS:
        name = f"{name}-compile"
    if re.search(r"async.?tp", options.lower()) and name.startswith("torchtitan"):
        name = "torchtitan-async"
    if name == "pax" and re.search(r"\bte\b", options.lower()):
        name = "pax-te"
    return STACKS[name]


def _is_before(date: str, year: int) -> bool:
    found = re.match(r"(\d{4})", date)
    return found is not None and int(found[1]) < year


def of(name: str) -> Stack:
    """The stack of this name; the usual habits of its framework for one that is not known."""
    return STACKS.get(name) or (_JAX if "jax" in name else _TORCH)
