"""What is alive only while an operation runs."""

from __future__ import annotations

from meshscope.advisor.memory.block import compute_bytes, widths
from meshscope.advisor.memory.constants import WORKSPACE_BYTES, WORKSPACES, WORKSPACES_OF_MEGATRON
from meshscope.advisor.memory.habits import is_megatron, is_nemo
from meshscope.advisor.memory.parts import Part, number, said
from meshscope.advisor.memory.place import Place
from meshscope.advisor.memory.state import Moment, divided

WORKSPACE = "matrix products' workspace"
"""The part's name: of a GPU only."""


def temporaries(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Of one device at one moment."""
    parts = [_workspace(place), *_stand_ins(place, moment), *_weights_in_fp8(place)]
    if moment in ("backward", "end"):
        parts += [*_backward(place), *_score_gradients(place), *_ring(place)]
    if moment == "step":
        parts += _step(place)
    return tuple(part for part in parts if part.size_bytes)


def _workspace(place: Place) -> Part:
    many = WORKSPACES_OF_MEGATRON if place.own.stands_in_gradients else WORKSPACES
    words = f"{many} of {said(WORKSPACE_BYTES)}"
    return Part("temporaries", WORKSPACE, many * WORKSPACE_BYTES, words, 0.2, 2.0)


def _stand_ins(place: Place, moment: Moment) -> list[Part]:
    """Where products add their gradients to an fp32 buffer themselves, autograd still wants a tensor of the weight's
    shape. Transformer Engine keeps one per shape for good; the output layer's lives while it is used.
    SOURCE: transformer_engine/pytorch/module/base.py, ``get_dummy_wgrad``; megatron/core/tensor_parallel/layers.py."""
    if not place.own.stands_in_gradients:
        return []
    each = place.candidate.numerics.parameter_bytes
    shapes = place.share.shapes
    size = each * shapes
    words = f"{each:g} B × {number(shapes)} in one weight of each shape = {said(size)}"
    parts = [Part("temporaries", "stand-ins of gradients", size, words, 0.3, 1.05)]
    if moment == "head" and place.stage.has_head:
        head = each * place.architecture.vocab * place.architecture.d_model / place.candidate.tensor
        parts.append(Part("temporaries", "stand-in of the output layer's gradient", head, f"{each:g} B = {said(head)}"))
    return parts


def _backward(place: Place) -> list[Part]:
    """Gradients of one layer's widest tensors, beyond what the layer frees meanwhile: of the MLP's first products."""
    shape, width = place.architecture, widths(place.candidate, place.own)
    d_ff = shape.d_ff * shape.top_k if place.stage.mixture_layers else shape.dense_d_ff or shape.d_ff
    products = 2 if shape.is_gated else 1
    sent = width.compute * shape.d_model * shape.top_k if place.stage.mixture_layers else 0.0
    per_token = (
        sent + width.compute * products * d_ff / width.tensor + 2 * width.stream * shape.d_model / width.sequence
    )
    size = per_token * place.tokens
    words = f"gradients within a layer: {per_token:,.0f} B × {number(place.tokens)} tokens = {said(size)}"
    return [Part("temporaries", "gradients within a layer", size, words, 0.6, 1.8)]


def _score_gradients(place: Place) -> list[Part]:
    if place.candidate.is_flash:
        return []
    scores = place.architecture.heads * place.candidate.seq_len / place.candidate.tensor
    size = 4.0 * scores * place.tokens
    return [Part("temporaries", "gradients of attention's scores", size, f"4 B a score = {said(size)}", 0.5, 2.0)]


def _ring(place: Place) -> list[Part]:
    """Context parallelism passes keys and values around, and their gradients: a chunk of each comes in as one goes."""
    if place.candidate.context == 1:
        return []
    size = (
        2 * 2 * 2 * compute_bytes(place.candidate) * place.architecture.kv_width * place.tokens / place.candidate.tensor
    )
    words = f"keys, values and their gradients, one chunk in and one out = {said(size)}"
    return [Part("temporaries", "chunks passed around", size, words, 0.5, 1.5)]


def _weights_in_fp8(place: Place) -> list[Part]:
    """Transformer Engine casts a weight once per step, and its transpose; where parameters themselves are fp8 there is
    no second copy, so one byte stands between none and two.
    SOURCE: transformer_engine/pytorch/module/base.py, ``get_weight_workspace``."""
    if not place.own.stands_in_gradients or place.candidate.numerics.compute not in ("fp8", "fp4"):
        return []
    many = place.share.all - place.share.tables
    if place.candidate.zero_stage == 3:
        many = place.share.layer
    words = f"1 B × {number(many)} weights in layers = {said(many)}"
    if is_nemo(place.candidate):
        # Its recipes keep parameters in fp8, in place of bf16.
        return [Part("temporaries", "weights in fp8", 0.0, words, spare_bytes=many)]
    return [Part("temporaries", "weights in fp8", many, words, 0.0, 2.1)]


def _step(place: Place) -> list[Part]:
    """torch's Adam over lists of tensors makes one temporary as large as a moment. Fused ones make none, nor do those
    that go parameter by parameter.
    SOURCE: torch/optim/adamw.py, ``_multi_tensor_adamw``."""
    if is_megatron(place.candidate):
        return _gradients_in_fp32(place)
    if place.candidate.optimizer.lower() not in ("adamw", "adam"):
        return []
    each = place.candidate.numerics.optimizer_bytes / 2
    size = each * divided(place, is_sharded=place.candidate.zero_stage >= 1)
    if place.candidate.framework == "jax":
        return [Part("temporaries", "updates", 0.0, "updates are fused with the step")]
    words = f"one moment's size where the optimizer is not fused: {each:g} B a parameter = {said(size)}"
    return [Part("temporaries", "optimizer's temporary", size, words, 0.0, 1.1)]


def _gradients_in_fp32(place: Place) -> list[Part]:
    """Half-wide gradients are copied to fp32 for the step: 20 bytes a parameter instead of 16.
    SOURCE: megatron/core/optimizer/optimizer.py, ``_copy_model_grads_to_main_grads``; Megatron-LM's README."""
    if place.candidate.numerics.gradient_bytes >= 4:
        return []
    size = 4.0 * divided(place, is_sharded=place.candidate.zero_stage >= 1)
    return [Part("temporaries", "gradients in fp32", size, f"4 B a parameter = {said(size)}", 0.95, 1.02)]
