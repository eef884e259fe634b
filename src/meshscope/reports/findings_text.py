"""Findings in the text report: each with its cost, what shows it, what to do, and lines to paste."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.findings import Finding, findings
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.looked_for import looked_for
from meshscope.analysis.looked_for_words import folded
from meshscope.analysis.looked_for_words import headline as headline_of
from meshscope.reports.columns import wrapped
from meshscope.run import Run
from meshscope.units import duration, percent

_MARGIN = "      | "


def findings_lines(run: Run) -> list[str]:
    """Code is not folded: it is to be pasted, and short enough."""
    found, looked = findings(run), looked_for(run)
    head = "  findings (their costs overlap, and do not add up):" if _have_costs(found) else "  findings:"
    lines = [head] if found else wrapped(f"findings: {headline_of(looked)}", hanging="    ")
    return lines + [line for number, one in enumerate(found, start=1) for line in _finding(number, one)]


def looked_for_lines(run: Run) -> list[str]:
    """What was looked for without being found, and how much could not be: all of it is in the JSON and on the screen,
    where it stands in nobody's way."""
    return wrapped(folded(looked_for(run)), hanging="  ")


def _have_costs(found: Sequence[Finding]) -> bool:
    """Whether several have a cost, so that somebody may add them up."""
    return sum(one.has_cost for one in found) > 1


def _finding(number: int, one: Finding) -> list[str]:
    lines = wrapped(f"{number} {headline(one)}", indent="    ", hanging="  ")
    lines += [line for said in one.evidence for line in wrapped(f"– {said}", indent="      ", hanging="  ")]
    lines += wrapped(one.advice, indent="      ")
    return [*lines, *(_MARGIN + line for line in one.fix.splitlines())]


def headline(one: Finding) -> str:
    """``straggler, rank 2: 3.00 ms, 3.9 % of the mean profiled step of 77.6 ms``."""
    who = f", {ranks_words(one.ranks)}" if one.ranks else ""
    return f"{one.title}{who}{cost(one)}"


def cost(one: Finding) -> str:
    if not one.has_cost:
        return ": spoils the run" if one.is_grave else ""
    return f": {duration(one.cost_ns)}, {percent(one.cost_frac)} of {one.of}"
