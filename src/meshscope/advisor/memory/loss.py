"""Logits and their loss: the widest tensors there are, alive for a moment."""

from __future__ import annotations

from meshscope.advisor.memory.block import compute_bytes
from meshscope.advisor.memory.constants import LOSS_PIECES
from meshscope.advisor.memory.habits import is_megatron
from meshscope.advisor.memory.parts import Part, number, said
from meshscope.advisor.memory.place import Place
from meshscope.advisor.memory.state import Moment


def logits(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Of the stage with the output layer, when the loss is at its widest."""
    if moment not in ("loss", "head") or not place.stage.has_head:
        return ()
    candidate = place.candidate
    per_logit, words, least, most = _alive(place) if moment == "loss" else _gradient(place)
    rows = place.tokens / (LOSS_PIECES if candidate.is_logits_chunked else 1)
    size = per_logit * rows * place.architecture.vocab / candidate.tensor
    divided = f" / {candidate.tensor}" if candidate.tensor > 1 else ""
    chunk = f" / {LOSS_PIECES} pieces" if candidate.is_logits_chunked else ""
    arithmetic = (
        f"{per_logit:g} B ({words}) × {number(place.tokens)} tokens{chunk} × {place.architecture.vocab}{divided}"
    )
    if candidate.is_logits_chunked:
        least, most = 0.3, 2.5
    return (Part("logits", "logits and loss", size, f"{arithmetic} = {said(size)}", least, most),)


def hole(place: Place, moment: Moment) -> tuple[Part, ...]:
    """What half-wide logits leave behind, between wider tensors that were made while they lived: the fp32 ones that the
    backward pass makes do not fit in their place. The hole may close, or be as large as an fp32 one."""
    candidate = place.candidate
    has_none = candidate.framework == "jax" or is_megatron(candidate) or candidate.is_logits_chunked
    has_none = has_none or "composer" in candidate.stack
    compute = compute_bytes(candidate)
    if moment != "loss" or has_none or compute == 4:
        return ()
    size = compute * place.tokens * place.architecture.vocab / candidate.tensor
    return (Part("logits", "hole left by half-wide logits", size, f"{compute:g} B a logit = {said(size)}", 0.0, 2.0),)


def _gradient(place: Place) -> tuple[float, str, float, float]:
    """What reaches the output layer's backward pass."""
    compute = compute_bytes(place.candidate)
    return compute, "the logits' gradient", 0.9, 1.5


def _alive(place: Place) -> tuple[float, str, float, float]:
    """Bytes per logit at the widest moment, what they are, and bounds as parts of that.

    SOURCE: megatron/core/fusions/fused_cross_entropy.py (fp32 in place, one gradient in the compute type);
    torch's ``log_softmax`` and ``nll_loss`` backward (three fp32 tensors at once);
    torch/distributed/tensor/parallel/loss.py (four)."""
    compute = compute_bytes(place.candidate)
    if is_megatron(place.candidate):
        return compute + 4, "logits, fp32 softmax", 0.95, 1.35
    if "composer" in place.candidate.stack:
        # llm-foundry's models use flash-attention's loss, which reads half-wide logits and writes their gradient.
        return 2 * compute, "logits and their gradient", 0.9, 1.7
    if place.candidate.framework == "jax":
        return compute + 8, "logits, fp32 logits, their gradient", 0.55, 1.25
    if place.candidate.tensor > 1:
        # Logits stay divided; their log-softmax and its gradient are written out, out of place.
        return 16.0, "fp32: log-softmax, two gradients and their sum", 0.6 if place.candidate.is_compiled else 0.8, 1.25
    if place.candidate.is_compiled:
        return 12.0, "fp32: log-softmax, loss's gradient, logits' gradient", 0.4, 1.2
    return 12.0, "fp32: log-softmax, loss's gradient, logits' gradient", 0.85, 1.35
