"""How long an operation takes that only moves bytes."""

from __future__ import annotations

from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.figures import Figure


def bytes_moved(device: DeviceSpec, size_bytes: float) -> Figure:
    """Seconds to read or write ``size_bytes`` in the device's memory (what is read and what is written together)."""
    rate = device.measured_memory_bytes_per_s or 0.85 * device.memory_bytes_per_s
    took_s = size_bytes / rate
    return Figure(took_s, took_s * 0.9, took_s * 1.3, "datasheet", "a share of the memory's rate")
