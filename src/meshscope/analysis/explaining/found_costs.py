"""Explains what findings cost: the time, the share of what it is told as, and the rule that finds it."""

from __future__ import annotations

import sys
from functools import cache, partial

from meshscope.analysis.explaining.figure import PRODUCT, ROUNDED, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.findings import Finding, findings, rules
from meshscope.run import Run
from meshscope.units import ranges

_EXCLUDES = "what other findings cost: two may share a cause, so they do not add up"


def numbers(run: Run) -> tuple[Number, ...]:
    codes = dict.fromkeys(one.code for one in findings(run))
    return tuple(number for code in codes for number in _numbers(code))


def _numbers(code: str) -> tuple[Number, ...]:
    no_step = "a rule looks at many steps; what it rests on is named in its evidence"
    return (
        Number(f"findings.{code}.cost", "ns", f"What the finding «{code}» costs in a step of the kind that it names.",
               _EXCLUDES, partial(_cases, code=code, is_share=False), (f"findings.{code}", f"findings.{code}.cost_ns"),
               no_step=no_step),
        Number(f"findings.{code}.share", "frac", f"What «{code}» costs, as a share of what it names.", _EXCLUDES,
               partial(_cases, code=code, is_share=True), (f"findings.{code}.cost_frac",), no_step=no_step,
               is_listed=False),
    )  # fmt: skip


def _cases(asked: Asked, *, code: str, is_share: bool) -> tuple[Case, ...]:
    found = [
        (at, one)
        for at, one in enumerate(findings(asked.run))
        if one.code == code and (asked.rank is None or not one.ranks or asked.rank in one.ranks)
    ]  # fmt: skip
    if not found:
        return (Case(code, None, why="it is not about that rank", rank=asked.rank),)
    return tuple(_case(at, one, is_share=is_share) for at, one in found)


def _case(at: int, one: Finding, *, is_share: bool) -> Case:
    of = f"{one.title}, {'rank' if len(one.ranks) == 1 else 'ranks'} {ranges(one.ranks)}" if one.ranks else one.title
    if not one.has_cost:
        return Case(of, None, why="it costs no time that can be told", rank=one.rank, notes=_notes(one))
    share = Figure(f"share of {one.of}", one.cost_frac, "frac")
    cost = made("by its rule", PRODUCT, share, Figure(one.of, one.of_ns))
    return Case(
        of=of,
        figure=share if is_share else made("its cost", ROUNDED, cost),
        json=f"findings[{at}].{'cost_frac' if is_share else 'cost_ns'}",
        rank=one.rank,
        notes=_notes(one),
    )


def _notes(one: Finding) -> tuple[str, ...]:
    share = (f"a share of {one.of}",) if one.has_cost else ()
    return (*share, *(f"shown by: {said}" for said in one.evidence), *_rule(one.code))


@cache
def _rule(code: str) -> tuple[str, ...]:
    """What the rule says of itself: when it fires, and what it counts."""
    rule = next((rule for rule in rules() if rule.code == code), None)
    module = sys.modules.get(rule.question.__module__) if rule is not None else None
    said = (module.__doc__ or "") if module is not None else ""
    return tuple(f"its rule: {' '.join(part.split())}" for part in said.split("\n\n") if part.strip())


GROUP = Group("findings", 26, numbers, heads=("findings.",))
