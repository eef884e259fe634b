"""What scaling curves say, in words: one line each, and what their shares are of."""

from __future__ import annotations

from meshscope.analysis.scaling import BATCH, STRONG, Curve, Point
from meshscope.units import counted, rate

ONE_RUN = "Each point is one run: how far runs of the same scatter is not known."


def titled(curve: Curve) -> str:
    """``strong scaling of ddp, global batch 8``."""
    if curve.kind == STRONG:
        return f"strong scaling of {curve.strategy}, global batch {curve.fixed}"
    if curve.kind == BATCH:
        return f"{curve.strategy} over batches, {counted(curve.fixed, 'rank')}"
    return f"weak scaling of {curve.strategy}, {counted(curve.fixed, 'sample')} per rank"


def measured_by(curve: Curve) -> str:
    """What the shares (or, over batches, the factors) of a curve are of."""
    first = curve.points[0]
    if curve.kind == BATCH:
        return f"× is throughput over that of a global batch of {first.global_batch}"
    return f"efficiency is throughput per rank, as a share of that of {counted(first.ranks, 'rank')}"


def in_short(curve: Curve) -> str:
    """A curve in one sentence."""
    points = " · ".join(_point(curve, point) for point in curve.points)
    return f"{titled(curve)}: {points} ({measured_by(curve)}){_left_out(curve)}."


def _point(curve: Curve, point: Point) -> str:
    if curve.kind == BATCH:
        return f"batch {point.global_batch} {rate(point.samples_per_s)} samples/s ({point.speedup:.2f}×)"
    return f"{counted(point.ranks, 'rank')} {point.efficiency_frac * 100:.0f} %"


def _left_out(curve: Curve) -> str:
    return "".join(f"; without {name}: {why}" for name, why in curve.left_out)
