"""How long a matrix product takes: a device's best rate, less what its shape costs.

The rate is ``share`` of the best that anybody measured on the device. It is divided by

- tiles: the product is cut into tiles, the last row and column of which may be half empty, and those are given out to
  the device's units in waves, the last of which may be half empty (stas00/ml-engineering training/performance; NVIDIA
  "Matrix multiplication background": tile and wave quantization). Of several tiles the best is taken;
- the inner dimension: ``1 + half_k / k``;
- what a product that draws much power for long falls to (Blackwell).

It takes no less than its operands take to move, and ``begun_us`` besides. Constants: ``data/matmul.toml``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.costs.memory_bound import rate_bytes_per_s
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure, Source
from meshscope.advisor.tables import table

_TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64))
_BYTES = {"fp32": 4.0, "tf32": 4.0, "fp8": 1.0, "fp4": 0.5}
_CORNER = 4.0
"""How sharply compute-bound turns into memory-bound: times are added as this power."""


@dataclass(frozen=True, eq=False)  # there is one of each, and telling by identity is what makes looking up cheap
class Fit:
    """One entry of ``data/matmul.toml``."""

    share: float
    begun_s: float
    half_k: float
    small_tile: float
    units: int
    off: float = 0.0
    throttle_share: float = 1.0
    throttle_flop: float = 0.0
    tiles: tuple[tuple[int, int], ...] = _TILES
    of: str = "peak"
    how: Source = "interpolated"
    where: str = ""


@dataclass(frozen=True)
class Machine:
    """What a product runs on. A fit's share is of ``best_flops_per_s``; ``most_flops_per_s`` is never passed."""

    best_flops_per_s: float
    most_flops_per_s: float
    memory_bytes_per_s: float
    operand_bytes: float


def matmul(device: DeviceSpec, m: float, n: float, k: float, compute: str, count: float = 1.0) -> Figure:
    """Seconds of ``count`` products (m × k) @ (k × n) in one kernel, multiplied in ``compute`` and written in bf16 (or
    fp32, where that is multiplied). A device of several dies cuts m among them.

    Raises NotCovered where the device does not multiply in ``compute``.
    """
    if min(m, n, k, count) <= 0:
        return Figure(0.0, 0.0, 0.0, "analytic", "nothing to multiply")
    shape = fit(device.family, compute)
    took_s = seconds(shape, machine(device, compute, shape), m / device.dies, n, k, count)
    return Figure(took_s, took_s / (1 + shape.off), took_s * (1 + shape.off), shape.how, shape.where)


def machine(device: DeviceSpec, compute: str, shape: Fit) -> Machine:
    """One die of ``device``. Raises NotCovered where it does not multiply in ``compute``."""
    peak = device.peak_flops_per_s.get(compute, 0.0)
    if not peak:
        known = ", ".join(device.peak_flops_per_s) or "nothing"
        raise NotCovered(f"{device.name} does not multiply in {compute}", hint=f"It does in {known}.")
    measured = device.measured_flops_per_s.get(compute, 0.0)
    if compute == "fp16":
        measured = measured or device.measured_flops_per_s.get("bf16", 0.0)
    best = peak if shape.of == "peak" else measured or 0.8 * peak
    return Machine(
        best / device.dies,
        (measured or peak) / device.dies,
        rate_bytes_per_s(device) / device.dies,
        _BYTES.get(compute, 2.0),
    )


@lru_cache(maxsize=65536)
def seconds(shape: Fit, on: Machine, m: float, n: float, k: float, count: float = 1.0) -> float:
    """By the formula above."""
    flop = 2.0 * m * n * k * count
    rate = on.best_flops_per_s * shape.share * filled(shape, m, n, count) / (1.0 + shape.half_k / k)
    if shape.throttle_flop:
        rate *= shape.throttle_share + (1 - shape.throttle_share) / (1 + (flop / shape.throttle_flop) ** 2)
    multiplied_s = flop / min(rate, on.most_flops_per_s)
    written_bytes = max(on.operand_bytes, 2.0) * m * n
    moved_s = count * (on.operand_bytes * (m + n) * k + written_bytes) / on.memory_bytes_per_s
    return shape.begun_s + float((multiplied_s**_CORNER + moved_s**_CORNER) ** (1 / _CORNER))


def filled(shape: Fit, m: float, n: float, count: float = 1.0) -> float:
    """The share of all tiles in all waves that has work, with the best tile; smaller tiles count for less."""
    largest = max(rows * columns for rows, columns in shape.tiles)
    return max(
        _filled(m, n, count, tile, shape.units) * float(shape.small_tile ** math.log2(largest / (tile[0] * tile[1])))
        for tile in shape.tiles
    )


def _filled(m: float, n: float, count: float, tile: tuple[int, int], units: int) -> float:
    rows, columns = tile
    tiles = math.ceil(m / rows) * math.ceil(n / columns) * math.ceil(count)
    waves = math.ceil(tiles / units)
    return m * n * count / (waves * units * rows * columns)


@cache
def fit(family: str, compute: str) -> Fit:
    """The constants of a family in a compute type; those of no family in particular where it has none of its own."""
    entries = table("matmul")["fit"]
    found = next((e for e in entries if family in e["families"] and compute in e["computes"]), entries[-1])
    return Fit(
        share=found["share"],
        begun_s=found["begun_us"] * 1e-6,
        half_k=found["half_k"],
        small_tile=found["small_tile"],
        units=found["units"],
        off=found["off"],
        throttle_share=found.get("throttle_share", 1.0),
        throttle_flop=found.get("throttle_flop", 0.0),
        tiles=tuple((rows, columns) for rows, columns in found.get("tiles", _TILES)),
        of=found["of"],
        how=found["how"],
        where=found["where"],
    )
