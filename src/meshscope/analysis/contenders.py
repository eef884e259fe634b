"""The runs of a comparison as they stand beside each other: what a step of each takes, and what it is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from meshscope.analysis.figures import Figures, paced
from meshscope.analysis.overlap import CollectiveOverlap, overlap
from meshscope.analysis.parts import per_windows
from meshscope.analysis.standing import NO_STEP, NO_STEP_YET, Row, standing
from meshscope.analysis.step_split import StepSplit, step_split
from meshscope.run import Run

NO_WHOLE_STEP = "its traces hold no complete step"


@dataclass(frozen=True, eq=False)
class Contender:
    """One run. ``step_ns`` and its spread (half the interquartile range) are NaN where not known.

    They are of unprofiled steps past warm-up, as in the comparison. Native traces have none: there (``is_traced``) they
    are of profiled steps, mean and all. ``split`` is None where no complete step was profiled. Only those that are
    ranked are set against each other; ``why`` says of the others why they are not.
    """

    name: str
    row: Row
    is_traced: bool
    is_ranked: bool
    why: str
    step_ns: float
    step_spread_ns: float
    split: StepSplit | None
    figures: Figures
    collectives: tuple[CollectiveOverlap, ...]


_collectives = per_windows(overlap)


def contenders(runs: tuple[Run, ...]) -> tuple[Contender, ...]:
    """In the order of the runs."""
    return tuple(_contender(run, row) for run, row in zip(runs, standing(runs), strict=True))


def _contender(run: Run, row: Row) -> Contender:
    split, is_traced = step_split(run), not run.experiment.strategy
    step_ns, spread_ns, why = row.median_ns, row.spread_ns, row.not_ranked_why
    if is_traced:
        step_ns, spread_ns = (float(split.span_ns), split.spread_ns["span"]) if split else (math.nan, math.nan)
        # What a trace cannot have is held against none of them.
        why = "" if why in (NO_STEP, NO_STEP_YET) else why
        why = why or ("" if split else NO_WHOLE_STEP)
    return Contender(
        name=run.name,
        row=row,
        is_traced=is_traced,
        is_ranked=not why,
        why=why,
        step_ns=step_ns,
        step_spread_ns=spread_ns,
        split=split,
        figures=paced(run),
        collectives=_collectives(run),
    )


def order(found: tuple[Contender, ...]) -> tuple[Contender, ...]:
    """Those that are ranked, the fastest first: by throughput; native traces, which tell none, by their steps."""
    ranked = [one for one in found if one.is_ranked]
    return tuple(sorted(ranked, key=lambda one: one.step_ns if one.is_traced else -one.row.samples_per_s))
