"""What compilations cost, in sentences that the report, the panel and the finding share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from meshscope.analysis.compilation import NOT_SAID, Compilation, Recompilation
from meshscope.analysis.traced_compilation import NO_SHAPES, TracedCompilation
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ranges

_MOST_STEPS = 4


def reading(found: Compilation) -> str:
    """The one line to read first: what compiling cost, before and while the run trained."""
    before = f"{duration(found.before_ns)} of compiling before the first step"
    if found.first_step_ns > 0:
        before += f" and {duration(found.first_step_ns)} within it"
    parts = (_again(found), before) if found.storm else (before, _again(found))
    return "; ".join(parts)


def _again(found: Compilation) -> str:
    if not found.storm:
        early = len(found.again)
        return f"nothing compiled again past warm-up{f' ({early} in warm-up)' if early else ''}"
    count = counted(len(found.storm), "recompilation")
    where = f"in {'step' if len(found.steps) == 1 else 'steps'} {ranges(found.steps, most=_MOST_STEPS)}"
    whom = f" rank {found.rank}" if len(found.reporting) > 1 else ""
    took = f"took{whom} {duration(found.cost_ns)}"
    if math.isnan(found.cost_frac):
        return f"{count} {where} {took}"
    return f"{count} {where} {took}, {percent(found.cost_frac)} of the {duration(found.training_ns)} of training"


def why_words(one: Recompilation) -> str:
    """What changed, else the framework's reason, else that it gave none."""
    said = one.why or NOT_SAID
    return f"{said} (read from the compilation cache)" if one.is_from_cache else said


def who(run: Run, one: Recompilation) -> str:
    """``rank 1``, ``ranks 0–3``, or ``all``: a JAX process compiles for all of its devices."""
    ranks = max(run.experiment.ranks, 1)
    if run.experiment.framework == "jax" or len(one.ranks) == ranks:
        return "all"
    return ranges(one.ranks)


def traced_reading(found: Sequence[TracedCompilation]) -> str:
    """The same of traces alone, for the rank that compiled longest."""
    total: dict[int, int] = {}
    for one in found:
        total[one.rank] = total.get(one.rank, 0) + one.duration_ns
    rank = max(total, key=lambda rank: (total[rank], -rank))
    mine = [one for one in found if one.rank == rank]
    count = counted(sum(one.count for one in mine), "function")
    steps = [one.step for one in mine if one.step >= 0]
    where = f", in {'step' if len(steps) == 1 else 'steps'} {ranges(steps, most=_MOST_STEPS)}" if steps else ""
    return f"rank {rank} compiled {count} in {duration(total[rank])} while it was traced{where}; {NO_SHAPES}"


def stages(one: Recompilation) -> str:
    """``trace 5.0 ms, lower 3.0 ms, compile 42 ms``; "" where the framework does not tell stages apart."""
    if len(one.stage_ns) < 2:
        return ""
    parts = (f"{name} {duration(ns)}" for name, ns in one.stage_ns.items())
    return ", ".join(parts)
