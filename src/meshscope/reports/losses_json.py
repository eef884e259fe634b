"""``losses`` of ``analyze --json``: by framework, whether strategies learn what one device learns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from meshscope.analysis.losses import EARLY_STEPS, TOLERANCE_FRAC, Agreement, losses
from meshscope.run import Run
from meshscope.units import printable


def losses_json(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """An object per framework; none where no workload was recorded."""
    by_framework: dict[str, list[Agreement]] = {}
    for found in losses(tuple(runs)):
        by_framework.setdefault(found.framework, []).append(found)
    return [
        {
            "framework": framework,
            "tolerance_frac": TOLERANCE_FRAC,
            "first_steps": EARLY_STEPS,
            "strategies": [_strategy(one) for one in found],
        }
        for framework, found in by_framework.items()
    ]


def _strategy(found: Agreement) -> dict[str, Any]:
    said: dict[str, Any] = {
        "strategy": found.strategy,
        "against": found.against or None,
        "state": found.state,
        "why": printable(found.why) or None,
        "steps": found.steps,
    }
    if found.at_step < 0:
        return said
    # JSON has no infinity: where one device's loss is 0 there is no share of it.
    finite = {"largest_frac": found.largest_frac} if math.isfinite(found.largest_frac) else {}
    return said | finite | {"at_step": found.at_step}
