"""Prediction beside measurement, for programs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from meshscope.advisor.against import Against, Side
from meshscope.units import printable


def against_json(found: Against) -> dict[str, Any]:
    """Seconds and bytes; what is not known is absent. ``error_frac`` is predicted over measured, less one."""
    measured = found.measured
    said: dict[str, Any] = {
        "name": printable(found.name),
        "model": printable(found.asked.architecture.name),
        "strategy": printable(found.asked.candidate.strategy),
        "devices": found.asked.devices,
        "device": printable(found.cluster.device.name),
        "step_s": _known({
            "measured": measured.step_s,
            "measured_low": measured.low_s,
            "measured_high": measured.high_s,
            "steps": measured.steps,
        }),
        "terms": [_side(one, "s") for one in found.terms],
        "collectives": [_side(one, "s") for one in found.collectives],
        "memory": [_side(one, "bytes") for one in found.memory],
        "cannot_say": [printable(reason) for reason in found.cannot_say],
    }  # fmt: skip
    if found.step is not None:
        said["step_s"] |= {
            "predicted": found.step.value,
            "predicted_low": found.step.low,
            "predicted_high": found.step.high,
            "source": found.step.source,
            "error_frac": found.error_frac,
            "is_inside": found.is_inside,
        }
    if found.peak is not None:
        said["peak_bytes"] = _known({"predicted": found.peak.value, "measured": measured.peak_bytes})
    if found.calibrated.strategy:
        said["calibrated"] = {
            name: printable(value) if isinstance(value, str) else value
            for name, value in asdict(found.calibrated).items()
        }
    if found.worst is not None:
        said["worst"] = found.worst.name
    return said


def _side(one: Side, unit: str) -> dict[str, Any]:
    numbers = {f"predicted_{unit}": one.predicted, f"measured_{unit}": one.measured, f"error_{unit}": one.error}
    times = {"predicted_times": one.times[0], "measured_times": one.times[1]} if any(one.times) else {}
    return {"name": printable(one.name)} | _known(numbers) | times


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not isinstance(value, float) or math.isfinite(value)}
