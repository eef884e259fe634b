"""How long attention takes whose scores never reach memory (FlashAttention and its kin).

``begun + F / rate × (1 + short_tokens / s) × (1 + diagonal_tokens / s under a causal mask)``, where F counts two
products of s × s × width for each head (half of them under a causal mask), and two and a half times that backward, at a
lower rate. Constants and what they come from: ``data/attention.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure, Source
from meshscope.advisor.tables import table

_WIDE_HEAD = 128


@dataclass(frozen=True)
class Constants:
    """Those of ``data/attention.toml``, for one family of devices."""

    short_tokens: float
    diagonal_tokens: float
    backward_products: float
    backward_share: float
    narrow_power: float
    forward_begun_us: float
    backward_begun_us: float
    peak_share: float
    off: float
    quicker: float


def attention(
    device: DeviceSpec,
    batch: float,
    seq_len: float,
    heads: float,
    head_dim: float,
    compute: str = "bf16",
    *,
    is_causal: bool = True,
    is_backward: bool = False,
) -> Figure:
    """Seconds of one layer's attention, forward or backward. fp8 and fp4 attend in bf16, as training does.

    Raises NotCovered for a device without such a peak.
    """
    if min(batch, seq_len, heads, head_dim) <= 0:
        return Figure(0.0, 0.0, 0.0, "analytic", "nothing to attend to")
    known = constants(device.family)
    flop = forward_flop(batch, seq_len, heads, head_dim, is_causal=is_causal)
    rate = _rate(device, compute, known) * min(1.0, (head_dim / _WIDE_HEAD) ** known.narrow_power)
    begun_s = (known.backward_begun_us if is_backward else known.forward_begun_us) * 1e-6
    if is_backward:
        flop, rate = flop * known.backward_products, rate * known.backward_share
    blocks = (1 + known.short_tokens / seq_len) * (1 + (known.diagonal_tokens / seq_len if is_causal else 0.0))
    took_s = begun_s + flop / rate * blocks
    source, where = _evidence(device)
    return Figure(took_s, took_s / (1 + known.off) / known.quicker, took_s * (1 + known.off), source, where)


def forward_flop(batch: float, seq_len: float, heads: float, head_dim: float, *, is_causal: bool) -> float:
    """Of scores and their product with the values."""
    return 4.0 * batch * seq_len * seq_len * heads * head_dim * (0.5 if is_causal else 1.0)


@cache
def constants(family: str) -> Constants:
    """Those of a family where it has its own, else everybody's."""
    found = table("attention")
    common = {key: value for key, value in found.items() if key != "family"}
    return Constants(**common | found["family"].get(family, {}))


def _rate(device: DeviceSpec, compute: str, known: Constants) -> float:
    kind = "bf16" if compute in ("fp8", "fp4") else compute
    peak = device.peak_flops_per_s.get(kind, 0.0)
    wide = device.peak_flops_per_s.get("bf16") or device.peak_flops_per_s.get("fp16", 0.0)
    if not peak:
        raise NotCovered(f"{device.name} does not multiply in {kind}")
    rate = device.attention_flops_per_s or known.peak_share * wide
    return min(rate, rate * peak / wide) if wide else known.peak_share * peak


def _evidence(device: DeviceSpec) -> tuple[Source, str]:
    said = device.sources.get("attention_flops_per_s", "")
    how, _, where = said.partition(": ")
    if not device.attention_flops_per_s:
        return "datasheet", "a share of the peak"
    return ("assumed" if how == "assumed" else "interpolated"), where or "measured on this machine"
