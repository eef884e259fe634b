"""Explains the shares of a step: over all ranks, as the comparison has them, and of each rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from meshscope.analysis.explaining.evidence import events, place
from meshscope.analysis.explaining.figure import Figure
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.explaining.rank_time import NO_STEPS, PROFILED, behind, has_steps
from meshscope.analysis.explaining.split import Counting, counting, means, share, totals
from meshscope.run import Run

_SAID = {
    "compute": "computing beside no collective",
    "hidden": "in collectives under compute",
    "exposed": "in collectives beside no compute",
    "copy": "in copies beside neither",
    "idle": "without device work",
}
_ALSO = {"exposed": ("exposed_frac", "comparison.exposed_frac", "exp %")}


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    return tuple(
        Number(
            name=f"share.{what}",
            unit="frac",
            definition=f"The share of the mean complete profiled step spent {words}; the five shares add up to 1.",
            excludes=PROFILED,
            cases=partial(_cases, what=what),
            also=(f"shares.{what}", f"comparison.shares.{what}", *_ALSO.get(what, ())),
            by=("rank", "step"),
        )
        for what, words in _SAID.items()
    )


def _cases(asked: Asked, *, what: str) -> tuple[Case, ...]:
    is_whole = asked.step is None and not has_steps(asked.run)
    found = [one for one in counting(asked, is_whole=is_whole) if is_whole or one.steps]
    if not found:
        return (Case("all ranks", None, why="no profiled step of a rank with device work lies wholly in a window"),)
    ranks = sorted({one.window.rank for one in found})
    together = [] if asked.rank is not None else [("all ranks", None, found)]
    each = [(f"rank {rank}", rank, [one for one in found if one.window.rank == rank]) for rank in ranks]
    cases = []
    for of, rank, mine in (*together, *(each if len(ranks) > 1 or not together else [])):
        figure = share(what, _of(mine, asked, is_whole=is_whole))
        named = f"comparison.strategies[strategy={asked.run.experiment.strategy}]"
        is_told = rank is None and asked.step is None and not is_whole and bool(asked.run.experiment.strategy)
        windows = [one.window for one in mine]
        cases.append(
            Case(
                of=of,
                figure=figure,
                json=f"{named}.shares.{what}" if is_told else "",
                why="" if figure is not None else "its steps have no length",
                rank=rank,
                places=tuple(place(one.window, one.steps) for one in mine),
                evidence=behind(asked, what, mine) if rank is not None or len(ranks) == 1 else None,
                events=events(windows),
                notes=(NO_STEPS,)
                if is_whole
                else ()
                if asked.step is None
                else (f"of step {asked.step} alone, not the mean",),
            )
        )
    return tuple(cases)


def _of(mine: Sequence[Counting], asked: Asked, *, is_whole: bool) -> dict[str, Figure]:
    if is_whole or asked.step is not None:
        return totals(mine, "over whole windows" if is_whole else f"in step {asked.step}")
    return means(mine)


GROUP = Group("shares of a step", 2, numbers)
