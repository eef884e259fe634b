"""Findings: each pitfall of the field as a rule of its own file, found by its ``FINDING``.

A rule abstains where the data it needs is absent, and its thresholds stand in its docstring with their reasons: none
of them fires on a healthy run. On CPU ranks that share their cores (``standing.shares_cores``) nothing is said of
overlap. Of a simulated run only those are asked that are about the plan (``Rule.is_of_plan``): a machine that nobody
used has no stragglers, no noise and no lost events.
"""

from __future__ import annotations

from functools import cache

from meshscope.analysis.findings.rule import Finding as Finding
from meshscope.analysis.findings.rule import Rule
from meshscope.analysis.parts import per_run
from meshscope.discovery import discover
from meshscope.run import Run


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, by the name of its file."""
    return discover("meshscope.analysis.findings", "FINDING", Rule)


@per_run
def findings(run: Run) -> tuple[Finding, ...]:
    """What spoils the result first, then by cost, then what costs no time that can be told."""
    asked = (rule for rule in rules() if rule.is_of_plan or not run.is_simulated)
    found = [finding for rule in asked for finding in rule.question(run)]
    return tuple(sorted(found, key=_place))


def _place(finding: Finding) -> tuple[bool, float, str, tuple[int, ...]]:
    cost = finding.cost_frac if finding.has_cost else -1.0
    return not finding.is_grave, -cost, finding.code, finding.ranks
