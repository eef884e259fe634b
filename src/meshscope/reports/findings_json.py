"""``findings`` in ``analyze --json``: code, title, rank, cost, evidence and what to do, what spoils the run first."""

from __future__ import annotations

from typing import Any

from meshscope.analysis.findings import Finding, findings
from meshscope.analysis.looked_for import looked_for
from meshscope.run import Run


def findings_json(run: Run) -> list[dict[str, Any]]:
    """``rank`` is null where a finding is not about one rank, ``cost_ns`` where it costs no time that can be told."""
    return [_finding(one) for one in findings(run)]


def looked_for_json(run: Run) -> list[dict[str, str]]:
    """Each rule with its ``state``: found, judged (and not found), cannot say or does not apply, and ``why``."""
    return [
        {"code": one.code, "title": one.title, "state": one.state} | ({"why": one.why} if one.why else {})
        for one in looked_for(run)
    ]


def _finding(one: Finding) -> dict[str, Any]:
    said: dict[str, Any] = {
        "code": one.code,
        "title": one.title,
        "rank": one.rank,
        "ranks": list(one.ranks),
        "grave": one.is_grave,
        "cost_ns": round(one.cost_ns) if one.has_cost else None,
        "evidence": list(one.evidence),
        "advice": one.advice,
        "fix": one.fix,
    }
    return said | ({"cost_frac": one.cost_frac, "of": one.of} if one.has_cost else {})
