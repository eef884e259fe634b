"""Exposed all-gathers: FSDP waits for a module's parameters instead of gathering them while the one before computes.

Fires where all-gathers of modules other than the root (which is gathered first, with nothing before it) are exposed for
a tenth of the traced step, and half of them or more have less than half of their time under compute. Waiting for a late
rank is left out, and so is what may be waiting (``exposure.unsure``): where that would make the finding, nothing is
said, and why. Not on CPU ranks that share their cores, and not where nothing overlaps at all,
which is a finding of its own.
"""

from __future__ import annotations

import numpy as np

from meshscope.analysis.exposure import unsure, waited
from meshscope.analysis.findings.no_overlap import no_overlap, unmatched_why
from meshscope.analysis.findings.rule import Cost, Finding, Rule, per_step
from meshscope.analysis.findings.whole import all_traced
from meshscope.analysis.fsdp import ROOT, Module, fsdp, moved
from meshscope.analysis.standing import shares_cores
from meshscope.analysis.waiting import WindowWaits, waiting
from meshscope.intervals import EMPTY, Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import counted, duration, percent

LEAST_FRAC = 0.1
MOSTLY = 0.5

_GATHERS = ("forward", "backward")

_FIX = """for block, following in itertools.pairwise(blocks):
    block.set_modules_to_forward_prefetch([following])
    following.set_modules_to_backward_prefetch([block])"""


def exposed_gathers(run: Run) -> tuple[Finding, ...]:
    gathers = _gathers_apart(run)
    cost = _cost(run, is_sure=True) if gathers else Cost()
    if not cost.cost_frac >= LEAST_FRAC:
        return ()
    count, hidden = sum(one.count for one in gathers), sum(one.hidden for one in gathers)
    return (
        Finding(
            code=FINDING.code,
            title="FSDP's all-gathers are exposed",
            **vars(cost),
            evidence=(
                f"{count - hidden} of {counted(count, 'all-gather')} of modules beside the root, on all ranks "
                f"{all_traced(run)}, have less than half of their time under compute; all of them are exposed for "
                f"{duration(cost.cost_ns)}, {percent(cost.cost_frac)} of {cost.of}",
                _most(max(gathers, key=lambda one: one.exposed_ns), run),
                f"{sum(one.ahead for one in gathers)} of them were asked for by a prefetch",
            ),
            advice="Ask for the next module's parameters before this one computes. Where gathering takes longer than "
            "computing, only fewer bytes or larger batches help.",
            fix=_FIX,
        ),
    )


def _gathers_apart(run: Run) -> list[Module]:
    """The all-gathers of modules beside the root, where most of them hide behind nothing; else none."""
    found = fsdp(run)
    gathers = [one for one in found.modules if one.module != ROOT and one.what in _GATHERS] if found else []
    count, hidden = sum(one.count for one in gathers), sum(one.hidden for one in gathers)
    is_apart = gathers and hidden <= MOSTLY * count and not shares_cores(run) and not no_overlap(run)
    return gathers if is_apart else []


def unsure_gathers(run: Run) -> str:
    """Why this cannot be judged: what is exposed would be enough, and may be waiting. "" where it can be."""
    if not _gathers_apart(run) or not _cost(run, is_sure=False).cost_frac >= LEAST_FRAC:
        return ""
    return "" if _cost(run, is_sure=True).cost_frac >= LEAST_FRAC else unmatched_why(run)


def _cost(run: Run, *, is_sure: bool) -> Cost:
    """With what may be waiting, or without."""
    waits = waiting(run).windows
    lost = {window: _lost(window, waits.get(window)) for window in run.windows if window.device_kind != "none"}
    if is_sure:
        lost = {window: time - unsure(window, waits.get(window)) for window, time in lost.items()}
    return per_step(lost, run)


def _most(most: Module, run: Run) -> str:
    calls = counted(most.count, "call")
    where = f"{calls} of all ranks {all_traced(run)}"
    return f"most by the {most.what} all-gather of {most.module}: {duration(most.exposed_ns)} exposed in {where}"


def _lost(window: Window, waits: WindowWaits | None) -> Intervals:
    found = [one for one in moved(window) if one.module != ROOT and one.what in _GATHERS]
    if not found:
        return EMPTY
    gathered = union(np.concatenate([one.start_ns for one in found]), np.concatenate([one.end_ns for one in found]))
    return gathered - window.spans.busy(Kind.COMPUTE) - waited(window, waits)


FINDING = Rule("exposed-gathers", exposed_gathers, is_of_plan=True)
