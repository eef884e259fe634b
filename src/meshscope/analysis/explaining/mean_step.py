"""Explains the parts of a step as strategies are set side by side by them: the mean over ranks and profiled steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from meshscope.analysis.explaining.evidence import events, labels, place
from meshscope.analysis.explaining.figure import DIFFERENCE, ROUNDED_QUOTIENT, Figure, counted_of, made, total
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.explaining.rank_time import PROFILED, behind
from meshscope.analysis.explaining.split import Counting, counting, means
from meshscope.analysis.step_split import exposed_waits
from meshscope.run import Run

_SAID = {
    "span": "The time of a profiled step, as the profiler marked it",
    "compute": "Time of a profiled step in which compute ran and no collective did",
    "hidden": "Time of a profiled step in which a collective ran under compute",
    "exposed": "Time of a profiled step in which a collective ran and no compute did",
    "waiting": "Time of a profiled step in which a collective only waited for a late rank and no compute ran",
    "transfer": "Time of a profiled step in which a collective moved data and no compute ran",
    "copy": "Time of a profiled step in which a copy ran and neither compute nor a collective did",
    "idle": "Time of a profiled step in which neither compute nor a collective nor a copy ran",
}
_BEHIND = {"waiting": "exposed", "transfer": "exposed"}
_NO_WAITS = "waiting for a late rank cannot be told from transfer here"
HEAD = "mean_step"


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    return tuple(
        Number(
            name=f"{HEAD}.{what}",
            unit="ns",
            definition=f"{said}, in the mean over ranks and their complete profiled steps.",
            excludes=PROFILED,
            cases=partial(_cases, what=what),
            is_listed=False,
        )
        for what, said in _SAID.items()
    )


def _cases(asked: Asked, *, what: str) -> tuple[Case, ...]:
    found = [one for one in counting(asked) if one.steps]
    if not found:
        return (Case("all ranks", None, why="no profiled step of a rank with device work lies wholly in a window"),)
    ranks = sorted({one.window.rank for one in found})
    together = [("all ranks", None, found)] if asked.rank is None else []
    each = [(f"rank {rank}", rank, [one for one in found if one.window.rank == rank]) for rank in ranks]
    cases = [*together, *(each if len(ranks) > 1 or not together else [])]
    return tuple(_case(asked, what, of, rank, mine) for of, rank, mine in cases)


def _case(asked: Asked, what: str, of: str, rank: int | None, mine: Sequence[Counting]) -> Case:
    figure = _figure(asked.run, what, mine)
    windows = [one.window for one in mine]
    is_one = rank is not None or len({window.rank for window in windows}) == 1
    return Case(
        of=of,
        figure=figure,
        why="" if figure is not None else _NO_WAITS,
        rank=rank,
        places=tuple(place(one.window, one.steps) for one in mine),
        evidence=behind(asked, _BEHIND.get(what, what), mine) if is_one else None,
        events=events(windows),
    )


def _figure(run: Run, what: str, mine: Sequence[Counting]) -> Figure | None:
    of = means(mine)
    if what in ("compute", "copy"):
        # What is added up to the whole of it comes first.
        return of["compute" if what == "compute" else "busy"].of[0]
    if what not in ("waiting", "transfer"):
        return of[what]
    waits_ns = exposed_waits(run)
    if waits_ns is None:
        return None
    windows = [one.window for one in mine]
    leaves = [Figure(name, waits_ns[window]) for name, window in zip(labels(windows), windows, strict=True)]
    steps = counted_of(sum(len(one.steps) for one in mine), "steps")
    waiting = made("waiting", ROUNDED_QUOTIENT, total("exposed waiting in complete steps", leaves), steps)
    return waiting if what == "waiting" else made("transfer", DIFFERENCE, of["exposed"], waiting)


GROUP = Group("the mean step over all ranks", 32, numbers, heads=(f"{HEAD}.",))
