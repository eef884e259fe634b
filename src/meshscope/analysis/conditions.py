"""Conditions for a build to fail: ``step_time>5%``, ``throughput<-5%``, ``memory>30GB``.

``METRIC OP THRESHOLD``: with ``%`` the change of B against A is meant, in percent of A; with a unit B's own value. A
condition holds when the whole interval lies beyond the threshold, and does not when none of it does; in between
nobody can say. A value of B itself, which has no interval of its own, gets the width of the change's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from meshscope.analysis.change import UNSURE, Change, Quantity
from meshscope.errors import InputError
from meshscope.units import duration, rate, size

METRICS = ("step_time", "throughput", "compute", "collective", "exposed", "idle", "memory")
HOLDS, HOLDS_NOT = "holds", "does not hold"

_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_BYTES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_RATES = {"/s": 1.0}
_UNITS = {"ns": _NS, "bytes": _BYTES, "per_s": _RATES}
_FORM = re.compile(r"\s*([a-z_]+)\s*(>=|<=|>|<)\s*([+\-−]?\d+(?:\.\d+)?)\s*(%|[a-zµ/]+)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Condition:
    """``threshold`` is a fraction of A's value where ``is_change``, else B's value in ns, bytes or per second."""

    text: str
    metric: str
    is_above: bool
    is_inclusive: bool
    threshold: float
    is_change: bool


@dataclass(frozen=True)
class Judged:
    """``state``: holds, does not hold or cannot say; ``why`` carries the figures."""

    condition: Condition
    strategy: str
    state: str
    why: str


def conditions(text: str) -> tuple[Condition, ...]:
    """One or several, with commas between. Raises InputError for what is no condition."""
    return tuple(_condition(part.strip()) for part in text.split(","))


def _condition(text: str) -> Condition:
    found = _FORM.fullmatch(text)
    if found is None:
        raise InputError(
            f"{text!r} is no condition.", hint='Write it as METRIC>NUMBER% or with a unit: "step_time>5%,memory>30GB".'
        )
    metric, operator, number, unit = found.groups()
    if metric.lower() not in METRICS:
        raise InputError(f"There is no metric {metric!r}.", hint=f"The metrics are {', '.join(METRICS)}.")
    value, is_change = float(number.replace("−", "-")), unit == "%"
    scale = 0.01 if is_change else _scale(metric.lower(), unit)
    return Condition(text, metric.lower(), operator[0] == ">", operator.endswith("="), value * scale, is_change)


def _scale(metric: str, unit: str) -> float:
    kind = {"throughput": "per_s", "memory": "bytes"}.get(metric, "ns")
    if unit.lower() not in _UNITS[kind]:
        raise InputError(
            f"{unit!r} is no unit of {metric}.", hint=f"Use % or one of {', '.join(_UNITS[kind])}: {metric}>5%."
        )
    return _UNITS[kind][unit.lower()]


def judged(asked: Sequence[Condition], change: Change) -> tuple[Judged, ...]:
    """Every condition on one pair."""
    known = {quantity.metric: quantity for quantity in change.quantities}
    return tuple(_judged(condition, change.strategy or change.b_title, known[condition.metric]) for condition in asked)


def _judged(condition: Condition, strategy: str, found: Quantity) -> Judged:
    low, at, high = _interval(condition, found)
    figures = _figures(condition, low, at, high)
    if any(math.isnan(value) for value in (low, at, high)):
        return Judged(condition, strategy, UNSURE, found.why or "it is not known")
    reached = [_is_beyond(condition, value) for value in (low, high)]
    if all(reached):
        return Judged(condition, strategy, HOLDS, figures)
    return Judged(condition, strategy, UNSURE if any(reached) else HOLDS_NOT, figures)


def _interval(condition: Condition, found: Quantity) -> tuple[float, float, float]:
    changes = found.low, found.change, found.high
    if condition.is_change:
        return changes
    low, _, high = ((1 + change) * found.a for change in changes)
    return low, found.b, high


def _is_beyond(condition: Condition, value: float) -> bool:
    if condition.is_inclusive and value == condition.threshold:
        return True
    return value > condition.threshold if condition.is_above else value < condition.threshold


def _figures(condition: Condition, low: float, at: float, high: float) -> str:
    if condition.is_change:
        return f"{at * 100:+.1f} % ({low * 100:+.1f} … {high * 100:+.1f})"
    show = {"throughput": _per_second, "memory": size}.get(condition.metric, duration)
    return f"{show(at)} ({show(low)} … {show(high)})"


def _per_second(value: float) -> str:
    return f"{rate(value)} samples/s"
