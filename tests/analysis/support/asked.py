"""Findings asked for by their code."""

from __future__ import annotations

from meshscope.analysis.findings import Finding, findings
from meshscope.run import Run

FIX_WIDTH = 72


def codes(run: Run) -> list[str]:
    return [found.code for found in findings(run)]


def only(code: str, run: Run) -> Finding:
    """The one finding of a code. Whatever it is, it says what to do, in lines that fit a report."""
    (found,) = (found for found in findings(run) if found.code == code)
    assert found.evidence
    assert found.advice
    assert found.fix
    assert max(len(line) for line in found.fix.splitlines()) <= FIX_WIDTH
    return found


def said(found: Finding) -> str:
    return "\n".join(found.evidence)
