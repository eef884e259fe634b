"""What a finding is, and what a rule that finds it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from meshscope.analysis.findings.whole import Whole, traced_step
from meshscope.analysis.in_steps import steps_of
from meshscope.intervals import Intervals, common_ns
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import duration


@dataclass(frozen=True)
class Finding:
    """One pitfall with what shows it and what to do.

    ``cost_ns`` is what it costs in one step (of ``of``'s kind: a usual step, a profiled one, or all that was traced or
    trained where there are none), ``cost_frac`` that as a share of ``of`` (``of_ns`` long); NaN where it costs no time
    that can be told.
    ``ranks`` are those it is about, () for all or none in particular. ``is_grave``: the run stands still, or what it
    trains or says is wrong. ``fix`` is ready to paste: lines of code, environment or flags, of at most 72 characters.
    """

    code: str
    title: str
    evidence: tuple[str, ...]
    advice: str
    fix: str
    ranks: tuple[int, ...] = ()
    cost_ns: float = math.nan
    cost_frac: float = math.nan
    of: str = ""
    of_ns: float = math.nan
    is_grave: bool = False

    @property
    def has_cost(self) -> bool:
        return not math.isnan(self.cost_frac)

    @property
    def rank(self) -> int | None:
        """The rank it is about, where it is one."""
        return self.ranks[0] if len(self.ranks) == 1 else None


@dataclass(frozen=True)
class Rule:
    """``question`` answers with no finding, one, or one for each thing that is so. It is pure and takes any run.

    ``is_of_plan``: what it finds lies in the order and the size of the work, so that it can be found in a step that was
    predicted. The other rules are about a machine and what happened on it.
    """

    code: str
    question: Callable[[Run], tuple[Finding, ...]]
    is_of_plan: bool = False


@dataclass(frozen=True)
class Cost:
    """A share of a whole, as the fields of a finding want it."""

    cost_ns: float = math.nan
    cost_frac: float = math.nan
    of: str = ""
    of_ns: float = math.nan


def share(frac: float, whole: Whole) -> Cost:
    """``frac`` of ``whole``; nothing where one of them is not known."""
    if math.isnan(frac) or not whole.is_known:
        return Cost()
    return Cost(frac * whole.ns, frac, whole.words, whole.ns)


def part(ns: float, whole: Whole) -> Cost:
    """``ns`` of ``whole``; nothing where one of them is not known."""
    return share(ns / whole.ns, whole) if whole.is_known else Cost()


def per_step(lost: Mapping[Window, Intervals], run: Run) -> Cost:
    """What some windows lose: in their complete steps, in the mean over those.

    What lies behind the last step or before the first is no part of a step, however long the window goes on there.
    Where none of them has a step it is the mean over ranks of all that they trace.
    """
    windows = [window for window in lost if window.steps]
    if windows:
        in_steps_ns = common_ns([lost[window] for window in windows], [steps_of(window) for window in windows])
        return part(in_steps_ns / sum(len(window.steps) for window in windows), traced_step(run))
    ranks = max(1, len({window.rank for window in lost}))
    span_ns = sum(window.end_ns - window.start_ns for window in lost) / ranks
    return of_traced(sum(found.total_ns for found in lost.values()) / ranks, span_ns)


def of_traced(ns: float, span_ns: float) -> Cost:
    """``ns`` of the time that was traced of a rank, where there is no step to count it in."""
    return part(ns, Whole(span_ns, f"the {duration(span_ns)} traced of a rank"))
