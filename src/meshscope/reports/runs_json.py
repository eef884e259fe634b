"""``meshscope advise --runs --json``: ``{"rows": […]}``, and with a score ``{"rows": […], "score": {…}}``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from meshscope.advisor.predictions import Predicted
from meshscope.advisor.scoring import Errors, Score, constant_mfu, scores
from meshscope.units import printable

Row = Mapping[str, str]


def runs_json(rows: Sequence[Row], found: Sequence[Predicted], *, with_score: bool) -> str:
    """The object as text."""
    values: dict[str, Any] = {"rows": [each.as_json() for each in found]}
    if with_score:
        values["score"] = score_values(rows, found)
    return msgspec.json.format(msgspec.json.encode(values), indent=1).decode()


def score_values(rows: Sequence[Row], found: Sequence[Predicted]) -> dict[str, Any]:
    """Errors against what was measured, as shares of it, by source; the two simple rules beside them."""
    judged = scores(rows, found, constant_mfu(rows))
    covered = sum(each.step_time_s is not None for each in found)
    return {
        "rows": len(found),
        "covered": covered,
        "covered_frac": covered / len(found) if found else None,
        "impossible": [printable(each.run_id) for each in found if each.impossible],
        "sources": [_score(each) for each in judged],
    }


def _score(score: Score) -> dict[str, Any]:
    return {
        "source": printable(score.source),
        "rows": score.rows,
        "with_time": score.timed,
        "covered_frac": _known(score.covered_frac),
        "time": _errors(score.time),
        "interval_90_holds_frac": _known(score.inside_frac),
        "mem_allocated": _errors(score.allocated),
        "mem_reserved": _errors(score.reserved),
        "constant_mfu": _errors(score.constant_mfu),
        "roofline": _errors(score.roofline),
        "worst_run": printable(score.worst_run) or None,
    }


def _errors(found: Errors) -> dict[str, Any] | None:
    if found.is_empty:
        return None
    return {
        "rows": found.count, "mape_frac": found.mean_frac, "p90_frac": found.p90_frac, "max_frac": found.worst_frac,
        "bias_frac": found.bias_frac,
    }  # fmt: skip


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
