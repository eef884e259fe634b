"""How long attention takes whose scores never reach memory."""

from __future__ import annotations

from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.figures import Figure


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
    """Seconds of one layer's attention, forward, or backward (which multiplies 2.5 times as much)."""
    flops = 4.0 * batch * seq_len * seq_len * heads * head_dim * (0.5 if is_causal else 1.0)
    flops *= 2.5 if is_backward else 1.0
    rate = device.attention_flops_per_s or 0.35 * device.peak_flops_per_s.get(compute, 0.0)
    took_s = flops / rate
    return Figure(took_s, took_s * 0.8, took_s * 1.5, "datasheet", "a share of the peak")
