"""What is measured of a machine, and for how long: shapes as training has them, by kind of device."""

from __future__ import annotations

from dataclasses import dataclass

MATMULS = {
    "cpu": (
        (128, 256, 256), (128, 1024, 256), (512, 256, 256), (512, 768, 256), (512, 1024, 256), (512, 256, 1024),
        (512, 2048, 256), (256, 768, 512), (1024, 768, 768), (1024, 3072, 768), (1024, 1024, 1024),
    ),
    "gpu": (
        (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 1024, 1024), (4096, 4096, 4096),
        (8192, 8192, 8192), (16384, 2048, 2048), (16384, 8192, 2048), (16384, 2048, 8192), (8192, 1024, 8192),
        (8192, 28672, 8192), (4096, 14336, 4096),
    ),
}  # fmt: skip
"""m, n, k of a product of ``m × k`` and ``k × n``: linear layers of small and large transformers."""

ATTENTION = {
    "cpu": ((8, 4, 64, 64), (2, 4, 256, 64), (1, 12, 512, 64)),
    "gpu": ((8, 16, 1024, 64), (4, 16, 2048, 128), (2, 32, 4096, 128), (1, 32, 8192, 128)),
}
"""Samples, heads, tokens, width of a head."""

COPY_BYTES = {"cpu": (1 << 16, 1 << 20, 1 << 23, 1 << 26), "gpu": (1 << 20, 1 << 24, 1 << 28, 1 << 30)}

COLLECTIVES = {
    "cpu": tuple(1 << power for power in range(10, 25, 2)),
    "gpu": tuple(1 << power for power in range(10, 31, 2)),
}

_COMPUTES = {"cpu": ("fp32", "bf16"), "gpu": ("fp32", "tf32", "fp16", "bf16")}
_KINDS_OF_COLLECTIVES = 4


@dataclass(frozen=True)
class Plan:
    """``size`` is cpu or gpu; ``each_s`` is how long one figure may take."""

    size: str
    ranks: int
    threads: int
    computes: tuple[str, ...]
    each_s: float


def plan(size: str, ranks: int, threads: int, seconds: float) -> Plan:
    """Everything within ``seconds``, shared out evenly."""
    computes = _COMPUTES[size]
    by_type = len(MATMULS[size]) + len(ATTENTION[size])
    figures = len(computes) * by_type + len(COPY_BYTES[size]) + 1 + _KINDS_OF_COLLECTIVES * len(COLLECTIVES[size])
    return Plan(size, ranks, threads, computes, seconds / figures)
