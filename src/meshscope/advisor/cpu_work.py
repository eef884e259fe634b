"""What eager torch does on a CPU rank, piece by piece: multiply-adds, bytes, and how many operators Python issues.

On a GPU operators are queued and the host runs ahead. A CPU rank does one thing after the other, so what Python and
the dispatcher take stands in the step beside the work itself, and a piece costs the sum of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from meshscope.advisor.architecture import Architecture

_FLOAT_BYTES = 4.0
_GRADIENT_COPIES = 3.0
"""Read both, write one: what adding a micro-batch's gradient to those before it moves."""

_BYTES = {"norm": 8.0, "add": 6.0, "copy": 8.0, "activation": 18.0, "loss": 16.0}
"""Per element of each operator's output, as if all were bound by memory: bytes that would take as long. Taken from a
trace of two blocks of width 256 over 128 tokens, one core, torch 2.13: LayerNorm 0.75 ns an element, an addition 0.6,
GELU (tanh) 1.8, log-softmax with its loss 1.6, at the 1e10 bytes a second that a core is assumed to move."""

_KEPT_WIDTHS = 16.0
"""Of a block's inputs to norms (2), products (1, 1, 1, 4), attention (3) and activation (4), per token."""

_FEW_TOKENS = 10.0
"""Products of as many tokens take twice as long for each as those of very many. One core multiplied 64 rows at 86
GFLOP/s and 256 at 104 (widths of 256 and 1024, torch 2.13); in traces of both, backward passes differ by half of that.
"""

BACKWARD_BYTES = 1.6
"""Times the bytes of the forward pass, of everything but matrix products: from the same traces (9.0 ms of 7.2, and
nothing of the additions)."""

ADAMW_BYTES = 80.0
"""Per parameter: twenty reads and writes of a float by the operators of AdamW's single-tensor loop (torch/optim/
adamw.py: mul_, lerp_, mul_, addcmul_, sqrt, div, add_, addcdiv_)."""

CALLS = {
    "block forward": 105.0,
    "block backward": 150.0,
    "ends forward": 120.0,
    "ends backward": 95.0,
    "optimizer of a tensor": 31.0,
    "step": 60.0,
}
"""Operators that are issued, those within others too: counted in traces of the bundled transformer (332 forward, 395
backward with two blocks; 465 for the fifteen tensors of AdamW)."""

TENSORS_PER_BLOCK, TENSORS_AT_ENDS = 6, 3


@dataclass(frozen=True)
class Work:
    """``flop`` of matrix products, and ``weight_bytes`` that these read (or write, of gradients), which few tokens do
    not make up for; ``attention_flop`` of attention, ``moved_bytes`` by what activations pass besides,
    ``streamed_bytes`` by what runs through parameters (optimizer, gradients), ``calls`` of operators."""

    flop: float = 0.0
    weight_bytes: float = 0.0
    attention_flop: float = 0.0
    moved_bytes: float = 0.0
    streamed_bytes: float = 0.0
    calls: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Work)))

    def __mul__(self, times: float) -> Work:
        return Work(*(getattr(self, one.name) * times for one in fields(Work)))


def product_flop(tokens: float, weights: float) -> float:
    """Of a product of so many rows with matrices of so many weights, as if all were of many rows."""
    return 2.0 * (tokens + _FEW_TOKENS) * weights


def block_forward(model: Architecture, tokens: float, seq_len: int) -> Work:
    """One block over ``tokens`` tokens in sequences of ``seq_len``."""
    width, wide = model.d_model, model.d_ff
    matrices = model.attention_parameters + model.mlp_parameters(wide)
    elements = {"norm": 2 * width, "add": 2 * width, "copy": width, "activation": wide}
    return Work(
        flop=product_flop(tokens, matrices),
        weight_bytes=_FLOAT_BYTES * matrices,
        attention_flop=4.0 * tokens * seq_len * model.attention_width * (0.5 if model.is_causal else 1.0),
        moved_bytes=tokens * sum(_BYTES[name] * count for name, count in elements.items()),
        calls=CALLS["block forward"],
    )


def block_backward(model: Architecture, tokens: float, seq_len: int) -> Work:
    """Two products for each of the forward pass; attention computes its scores again (Dao et al. 2022, section 3.1)."""
    ahead = block_forward(model, tokens, seq_len)
    return Work(
        2 * ahead.flop,
        2 * ahead.weight_bytes,
        2.5 * ahead.attention_flop,
        BACKWARD_BYTES * ahead.moved_bytes,
        calls=CALLS["block backward"],
    )


def first_forward(model: Architecture, tokens: float) -> Work:
    """The tables that are looked up."""
    moved = tokens * model.d_model * (2 * _BYTES["copy"] + _BYTES["add"])
    return Work(moved_bytes=moved, calls=0.25 * CALLS["ends forward"])


def last_forward(model: Architecture, tokens: float) -> Work:
    """The last norm, the output layer, and the loss."""
    moved = tokens * (_BYTES["norm"] * model.d_model + _BYTES["loss"] * model.vocab)
    table = model.d_model * model.vocab
    return Work(
        flop=product_flop(tokens, table),
        weight_bytes=_FLOAT_BYTES * table,
        moved_bytes=moved,
        calls=0.75 * CALLS["ends forward"],
    )


def first_backward(model: Architecture, tokens: float) -> Work:
    """Gradients of the tables, which are as large as the tables themselves."""
    ahead = first_forward(model, tokens)
    tables = _FLOAT_BYTES * model.embedding_parameters
    moved = BACKWARD_BYTES * ahead.moved_bytes
    return Work(moved_bytes=moved, streamed_bytes=tables, calls=0.25 * CALLS["ends backward"])


def last_backward(model: Architecture, tokens: float) -> Work:
    ahead = last_forward(model, tokens)
    calls = 0.75 * CALLS["ends backward"]
    return Work(2 * ahead.flop, 2 * ahead.weight_bytes, moved_bytes=ahead.moved_bytes, calls=calls)


def put_aside(model: Architecture, tokens: float, blocks: int, *, is_last: bool) -> Work:
    """What is kept for the backward pass, where other micro-batches come between: out of the caches, and back."""
    kept = _FLOAT_BYTES * tokens * (_KEPT_WIDTHS * model.d_model * blocks + (2 * model.vocab if is_last else 0))
    return Work(streamed_bytes=2 * kept)


def gradient_added(parameters: float, tensors: float) -> Work:
    """What a micro-batch after the first adds to the gradients that are there."""
    return Work(streamed_bytes=_GRADIENT_COPIES * _FLOAT_BYTES * parameters, calls=tensors)


def optimizer(parameters: float, tensors: float) -> Work:
    return Work(streamed_bytes=ADAMW_BYTES * parameters, calls=CALLS["optimizer of a tensor"] * tensors)


def copied(size_bytes: float, calls: float = 0.0) -> Work:
    """A buffer read and written once."""
    return Work(streamed_bytes=2.0 * size_bytes, calls=calls)
