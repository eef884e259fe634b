"""How long an operation takes that only moves bytes: norms, activations, casts, the optimizer."""

from __future__ import annotations

from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure, Source

_SHARE = 0.87
"""Of the datasheet's rate, where nobody measured: A100 0.82, H100 0.90, H200 0.88 (Azure AI-benchmarking-guide)."""
_OFF_MEASURED = 0.08
"""What was measured spreads that far around its middle: A100 1.61 to 1.75, H100 2.90 to 3.18, H200 4.0 to 4.48 TB/s."""
_OFF_SHARE = 0.15
_OFF_ASSUMED = 1.0


def bytes_moved(device: DeviceSpec, size_bytes: float) -> Figure:
    """Seconds to read and write ``size_bytes`` (both counted) in the device's memory, one kernel's launch not counted.

    Raises NotCovered for a device whose memory's rate nobody told.
    """
    took_s = max(size_bytes, 0.0) / rate_bytes_per_s(device)
    source, off, where = _evidence(device)
    return Figure(took_s, took_s / (1 + off), took_s * (1 + off), source, where)


def rate_bytes_per_s(device: DeviceSpec) -> float:
    """What long copies reach. Raises NotCovered where nobody told any rate."""
    rate = device.measured_memory_bytes_per_s or _SHARE * device.memory_bytes_per_s
    if not rate:
        raise NotCovered(f"Nobody told the rate of {device.name}'s memory", hint="Add memory_bytes_per_s to its file.")
    return rate


def _evidence(device: DeviceSpec) -> tuple[Source, float, str]:
    if device.measured_memory_bytes_per_s:
        said = device.sources.get("measured_memory_bytes_per_s", "measured")
        if said.startswith("measured"):
            return "measured", _OFF_MEASURED, said.removeprefix("measured: ")
        return "interpolated", _OFF_SHARE, said.partition(": ")[2] or said
    if device.sources.get("memory_bytes_per_s", "").startswith("assumed"):
        return "assumed", _OFF_ASSUMED, device.sources["memory_bytes_per_s"].removeprefix("assumed: ")
    return "datasheet", _OFF_SHARE, f"{_SHARE} of the datasheet's rate"
