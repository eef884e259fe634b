"""What one layer keeps for its backward pass, tensor by tensor."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.memory.habits import Habits


@dataclass(frozen=True)
class Kept:
    """``bytes_per_token`` of this device's share of a tensor."""

    name: str
    bytes_per_token: float


@dataclass(frozen=True)
class Widths:
    """Bytes an element: ``compute`` of what flows within a layer, ``product`` of what is kept of a product's input,
    ``stream`` of what flows from layer to layer.
    ``tensor`` divides what lies along heads or the MLP's width, ``sequence`` the rest, ``gathered`` a norm's output."""

    compute: float
    product: float
    stream: float
    tensor: int
    sequence: int
    gathered: int


def compute_bytes(candidate: Candidate) -> float:
    """Per element of what flows within a layer; what is multiplied in fp8 is bf16 otherwise."""
    return 4.0 if candidate.numerics.compute in ("fp32", "tf32") else 2.0


def widths(candidate: Candidate, own: Habits) -> Widths:
    """Transformer Engine keeps the fp8 input of an fp8 product, torchao the bf16 one."""
    compute = compute_bytes(candidate)
    product = 1.0 if own.stands_in_gradients and candidate.numerics.compute in ("fp8", "fp4") else compute
    sequence = candidate.tensor if candidate.is_sequence_parallel else 1
    gathered = 1 if own.gathers_are_kept else sequence
    return Widths(compute, product, 4.0 if own.is_autocast else compute, candidate.tensor, sequence, gathered)


def kept(architecture: Architecture, candidate: Candidate, own: Habits, *, is_mixture: bool) -> tuple[Kept, ...]:
    """Everything that one layer keeps, per token of this device, without checkpointing.

    For a GPT block in fp16 with dropout this sums to ``34 h + 5 a s`` bytes; for a gated block with fused kernels to
    ``12 h + 4 h kv / a + 6 f``.
    SOURCE: Korthikanti et al., arXiv 2205.05198, section 4.1 and equations 2 to 4; saved tensors of
    transformer_engine/pytorch/module/{layernorm_linear,layernorm_mlp}.py; of transformers' modeling_llama.py, eager.
    """
    width = widths(candidate, own)
    attention = _latent(architecture, width) if architecture.kv_rank else _projected(architecture, width, own)
    mlp = _mixture(architecture, width, own) if is_mixture else _mlp(_dense_width(architecture), "MLP", width, own)
    parts = (
        *_norm(architecture, width, own, "before attention", 3),
        *attention,
        *_scores(architecture, candidate, width, own),
        *_norm(architecture, width, own, "before the MLP", 2 if own.is_gated else 1),
        *mlp,
    )
    if own.has_dropout:
        parts = (*parts, Kept("dropout masks", 2.0 * architecture.d_model / width.sequence))
    return tuple(each for each in parts if each.bytes_per_token)


def _dense_width(architecture: Architecture) -> int:
    return (architecture.dense_d_ff if architecture.is_mixture else 0) or architecture.d_ff


def _norm(architecture: Architecture, width: Widths, own: Habits, where: str, readers: int) -> tuple[Kept, ...]:
    """A LayerNorm keeps its input, and the product after it the output. An RMSNorm written out in eager torch computes
    in fp32 and keeps the fp32 input and the normalized values too. autocast casts the output anew for each of the
    ``readers`` (products of it), where queries, keys and values are not one product."""
    d_model = architecture.d_model
    copies = readers if own.is_autocast and (own.is_gated or not architecture.is_causal) else 1
    output = Kept(f"norm's output {where}", copies * width.product * d_model / width.gathered)
    if own.recomputes_cheap:
        return (Kept(f"norm's input {where}", width.stream * d_model / width.sequence),)
    if own.fuses_norms or architecture.has_biases or not own.is_gated:
        return (Kept(f"norm's input {where}", width.stream * d_model / width.sequence), output)
    inside = (4.0 + width.stream) * d_model / width.sequence
    return (Kept(f"norm's fp32 input and normalized values {where}", inside), output)


def _projected(architecture: Architecture, width: Widths, own: Habits) -> tuple[Kept, ...]:
    query, key = architecture.attention_width, architecture.kv_width
    repeated = query if own.repeats_kv else key
    return (
        Kept("queries, keys, values", width.compute * (query + 2 * repeated) / width.tensor),
        Kept("attention's output", _output_bytes(width) * query / width.tensor),
    )


def _output_bytes(width: Widths) -> float:
    """Attention and the product after it share it, unless the product keeps an fp8 one of its own."""
    return width.compute + (width.product if width.product < width.compute else 0.0)


def _latent(architecture: Architecture, width: Widths) -> tuple[Kept, ...]:
    """Multi-head latent attention: the narrow products and their norms on every rank, queries, keys and values wide.
    SOURCE: DeepSeek-V2, arXiv 2405.04434, section 2.1."""
    narrow = 2 * architecture.query_rank + 2 * architecture.kv_rank + architecture.rope_dim
    head = architecture.head_dim + architecture.rope_dim
    wide = architecture.heads * (2 * head + architecture.head_dim)
    return (
        Kept("narrow queries, keys and values, and their norms", width.compute * narrow / width.sequence),
        Kept("queries, keys, values", width.compute * wide / width.tensor),
        Kept("attention's output", _output_bytes(width) * architecture.attention_width / width.tensor),
    )


def _scores(architecture: Architecture, candidate: Candidate, width: Widths, own: Habits) -> tuple[Kept, ...]:
    """Without flash attention: the softmax, and with dropout its mask and what is left; of flash, a number a row."""
    heads = architecture.heads / width.tensor
    if candidate.is_flash or candidate.checkpointing == "selective":
        return (Kept("attention's log-sum per row", 4.0 * heads),)
    per_score = width.compute + (1.0 + width.compute if own.has_dropout else 0.0)
    if not own.is_fused and candidate.numerics.cast_bytes and not own.recomputes_cheap:
        per_score += 4.0
    return (Kept("attention's scores", per_score * heads * candidate.seq_len),)


def _mlp(d_ff: float, name: str, width: Widths, own: Habits) -> tuple[Kept, ...]:
    """Of a gated MLP both products and what goes into the last one; written out in eager torch, the gate's activation
    too. A compiler computes the cheap ones again."""
    columns = d_ff / width.tensor
    products = width.compute * (2 if own.is_gated else 1)
    gate = width.compute if own.is_gated and not own.is_fused else 0.0
    last = 0.0 if own.recomputes_cheap else width.product
    return (Kept(f"{name}: products and activations", columns * (products + gate + last)),)


def _mixture(architecture: Architecture, width: Widths, own: Habits) -> tuple[Kept, ...]:
    """Tokens as they were sent to their experts, the experts' insides, and what came back of each."""
    top_k = architecture.top_k
    sent = width.product * architecture.d_model * top_k
    routed = Kept("router's logits and weights", 12.0 * architecture.experts)
    inside = _mlp(architecture.d_ff * top_k, "experts", width, own)
    shared = _mlp(architecture.d_ff * architecture.shared_experts, "shared experts", width, own)
    return (routed, Kept("tokens sent to experts", sent), *inside, *shared)
