"""``meshscope compare --json``: one object (format 1). What is not known is absent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from meshscope.analysis.change import Change, Quantity
from meshscope.analysis.conditions import Judged
from meshscope.analysis.difference import CONFIDENCE
from meshscope.analysis.pairing import Changes
from meshscope.analysis.work_changes import Seen, WorkChange
from meshscope.units import printable

FORMAT = 1
Refusal = tuple[str, str, str]


def change_json(found: Changes, judged: Sequence[Judged] = (), refused: Sequence[Refusal] = ()) -> str:
    """The object as text. ``refused`` lists (path, why, hint) of what could not be read."""
    return msgspec.json.format(msgspec.json.encode(change_values(found, judged, refused)), indent=1).decode()


def change_values(found: Changes, judged: Sequence[Judged] = (), refused: Sequence[Refusal] = ()) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "format": FORMAT,
        "confidence": CONFIDENCE,
        "comparisons": [_pair(pair) for pair in found.changes],
        "only_in": [{"side": side, "strategy": printable(title)} for side, title in found.alone],
        "fail_on": [
            {"condition": one.condition.text, "strategy": printable(one.strategy), "state": one.state, "why": one.why}
            for one in judged
        ],
        "refused": [{"path": printable(path), "why": why, "hint": hint} for path, why, hint in refused],
    }


def _pair(pair: Change) -> dict[str, Any]:
    return {
        "strategy": pair.strategy or None,
        "a": printable(pair.a_title),
        "b": printable(pair.b_title),
        "verdict": pair.verdict,
        "why": pair.why,
        "quantities": {found.metric: _quantity(found) for found in pair.quantities},
        "works": [_work(work) for work in pair.works],
        "profiled_steps": {"a": pair.profiled_steps[0], "b": pair.profiled_steps[1]},
        "differs": [printable(what) for what in pair.differs],
        "basis": list(pair.basis),
    }


def _quantity(found: Quantity) -> dict[str, Any]:
    numbers = {"a": found.a, "b": found.b, "change": found.change, "low": found.low, "high": found.high}
    said = {"unit": found.unit} | _finite(numbers) | {"verdict": found.verdict}
    return said | ({"why": found.why} if found.why else {})


def _work(work: WorkChange) -> dict[str, Any]:
    numbers = {"effect_ns": work.effect_ns, "low_ns": work.effect_low_ns, "high_ns": work.effect_high_ns}
    sides = {name: _seen(seen) for name, seen in (("a", work.a), ("b", work.b)) if seen is not None}
    return {"kind": work.kind, "name": printable(work.name), "how": work.how or None} | sides | _finite(numbers)


def _seen(seen: Seen) -> dict[str, float]:
    return _finite({"count": seen.count, "total_ns": seen.total_ns, "mean_ns": seen.mean_ns})


def _finite(numbers: dict[str, float]) -> dict[str, Any]:
    return {name: value for name, value in numbers.items() if math.isfinite(value)}
