"""How long a matrix product takes."""

from __future__ import annotations

from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.figures import Figure


def matmul(device: DeviceSpec, m: float, n: float, k: float, compute: str) -> Figure:
    """Seconds of (m × k) @ (k × n), multiplied in ``compute``."""
    peak = device.peak_flops_per_s.get(compute, 0.0)
    rate = device.measured_flops_per_s.get(compute, 0.8 * peak)
    took_s = 2.0 * m * n * k / rate
    return Figure(took_s, took_s * 0.8, took_s * 1.5, "datasheet", "a share of the peak")
