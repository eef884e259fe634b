"""``scaling`` in the comparison of ``analyze --json``: the curves of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from meshscope.analysis.scaling import Curve, scaling
from meshscope.analysis.scaling_words import measured_by
from meshscope.analysis.standing import Row
from meshscope.run import Run

_FIXED = {"strong": "global_batch", "weak": "samples_per_rank", "batch": "ranks"}


def scaling_json(runs: Sequence[Run], rows: Sequence[Row]) -> dict[str, Any]:
    """The key ``scaling`` where something was swept, else none."""
    curves = scaling(runs, rows)
    return {"scaling": [_curve(curve) for curve in curves]} if curves else {}


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "strategy": curve.strategy,
        "kind": curve.kind,
        _FIXED[curve.kind]: curve.fixed,
        "over": measured_by(curve),
        "points": [_finite(asdict(point)) for point in curve.points],
        "left_out": [{"strategy": name, "why": why} for name, why in curve.left_out],
    }


def _finite(point: dict[str, Any]) -> dict[str, Any]:
    said = {"strategy": point.pop("name")} | point
    said["median_ns"] = round(said["median_ns"]) if math.isfinite(said["median_ns"]) else math.nan
    return {name: value for name, value in said.items() if not isinstance(value, float) or math.isfinite(value)}
