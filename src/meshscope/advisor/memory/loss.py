"""Logits and their loss: the widest tensors there are, alive for a moment."""

from __future__ import annotations

from meshscope.advisor.memory.block import compute_bytes
from meshscope.advisor.memory.habits import is_megatron
from meshscope.advisor.memory.parts import Part, number, said
from meshscope.advisor.memory.place import Place
from meshscope.advisor.memory.state import Moment

_CHUNKS = 8
"""Pieces of a loss that is computed in pieces (torchtune's and torchtitan's default)."""


def logits(place: Place, moment: Moment) -> tuple[Part, ...]:
    """Of the stage with the output layer, when the loss is at its widest."""
    if moment not in ("loss", "head") or not place.stage.has_head:
        return ()
    candidate = place.candidate
    per_logit, words, least, most = _alive(place) if moment == "loss" else _gradient(place)
    rows = place.tokens / (_CHUNKS if candidate.is_logits_chunked else 1)
    size = per_logit * rows * place.architecture.vocab / candidate.tensor
    divided = f" / {candidate.tensor}" if candidate.tensor > 1 else ""
    chunk = f" / {_CHUNKS} pieces" if candidate.is_logits_chunked else ""
    arithmetic = (
        f"{per_logit:g} B ({words}) × {number(place.tokens)} tokens{chunk} × {place.architecture.vocab}{divided}"
    )
    if candidate.is_logits_chunked:
        least, most = 0.3, 2.5
    return (Part("logits", "logits and loss", size, f"{arithmetic} = {said(size)}", least, most),)


def _gradient(place: Place) -> tuple[float, str, float, float]:
    """What reaches the output layer's backward pass."""
    compute = compute_bytes(place.candidate)
    return compute, "the logits' gradient", 0.9, 1.5


def _alive(place: Place) -> tuple[float, str, float, float]:
    """Bytes per logit at the widest moment, what they are, and bounds as parts of that.

    SOURCE: megatron/core/fusions/fused_cross_entropy.py (fp32 in place, one gradient in the compute type);
    torch's ``log_softmax`` and ``nll_loss`` backward (three fp32 tensors at once)."""
    compute = compute_bytes(place.candidate)
    if is_megatron(place.candidate):
        return compute + 4, "logits, fp32 softmax", 0.95, 1.35
    if place.candidate.framework == "jax":
        return compute + 8, "logits, fp32 logits, their gradient", 0.55, 1.25
    if place.candidate.is_compiled:
        return 12.0, "fp32: log-softmax, loss's gradient, logits' gradient", 0.4, 1.2
    return 12.0, "fp32: log-softmax, loss's gradient, logits' gradient", 0.85, 1.35
