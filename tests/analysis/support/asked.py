"""Findings asked for by their code."""

from __future__ import annotations

from meshscope.analysis.findings import Finding, findings
from meshscope.run import Run


def codes(run: Run) -> list[str]:
    return [found.code for found in findings(run)]


def only(code: str, run: Run) -> Finding:
    """The one finding of a code."""
    (found,) = (found for found in findings(run) if found.code == code)
    return found


def said(found: Finding) -> str:
    return "\n".join(found.evidence)
