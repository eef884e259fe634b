"""Explains where a step of each rank goes: per step, and over whole windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.doubts import doubts
from meshscope.analysis.explaining.evidence import WORK, Pick, events, evidence, gaps, place, rows_of
from meshscope.analysis.explaining.figure import Figure
from meshscope.analysis.explaining.number import Asked, Case, Evidence, Group, Number
from meshscope.analysis.explaining.split import Counting, counting, means, totals
from meshscope.analysis.waiting import in_rendezvous, meets, waiting
from meshscope.intervals import Intervals
from meshscope.intervals import window as clipped
from meshscope.run import Run
from meshscope.spans import Kind

PROFILED = "steps that were not being profiled"

_KINDS = {
    "span": WORK,
    "compute": (Kind.COMPUTE,),
    "collective": (Kind.COLLECTIVE,),
    "copy": (Kind.COPY,),
    "hidden": (Kind.COLLECTIVE,),
    "exposed": (Kind.COLLECTIVE,),
    "busy": WORK,
}
_SAID = {
    "span": (
        "The time of a complete step on a rank, as the profiler marked it",
        "the time between windows, and the parts of steps that lie only partly in one",
    ),
    "compute": (
        "Time in which at least one span of compute ran on the rank",
        "copies, collectives, and a second span of compute at the same time",
    ),
    "collective": (
        "Time in which at least one collective ran on the rank, hidden under compute or not",
        "a second collective at the same time (waiting for peers is included)",
    ),
    "copy": ("Time in which at least one copy or memset ran on the rank", "a second copy at the same time"),
    "hidden": (
        "Time in which a collective ran on the rank while compute of the same rank ran too",
        "collectives that ran beside copies alone, or beside compute of other ranks",
    ),
    "exposed": (
        "Time in which a collective ran on the rank and no compute of the same rank did",
        "collectives under compute (waiting for peers is included)",
    ),
    "busy": (
        "Time in which compute, a collective or a copy ran on the rank",
        "waits that are no collective, launches, host work, and a second span at the same time",
    ),
    "idle": (
        "Time in which neither compute nor a collective nor a copy ran on the rank",
        "collectives that only wait for peers (they count as busy)",
    ),
    "wait": (
        "Time in which collectives of the rank waited for their peers, hidden under compute or not",
        "waiting beside the transfer of another collective, or beside another wait (waiting.wait adds up all calls); "
        "waiting for the host, for data or for a stream",
    ),
}
_IN_RENDEZVOUS = (
    "Time in which the rank was in XLA's rendezvous, as the trace records it, hidden under compute or not",
    "a second such span at the same time; this is not until the last rank came, which waiting.wait tells by matching "
    "ranks, and which may be more or less; waiting for the host or for data",
)
_ALSO = {
    "compute": ("compute_ns", "busy_compute"),
    "collective": ("collective_ns", "busy_collective", "collectives_time"),
    "copy": ("copy_ns", "busy_copy"),
    "hidden": ("hidden_ns", "overlap", "hidden_collective"),
    "exposed": ("exposed_ns", "exposed_collective", "exposed ms"),
    "busy": ("busy_ns",),
    "idle": ("idle_ns",),
    "span": ("span_ns", "ms profiled", "profiled_step"),
    "wait": ("wait_ns", "waiting", "wait ms", "rendezvous", "rendezvous ms"),
}
NO_STEPS = "no step lies wholly in a window, so this is over whole windows"
_NO_STEP = "no profiled step lies wholly in a window of this rank"


def numbers(run: Run) -> tuple[Number, ...]:
    """Per step where there is one to be a mean of, else over whole windows, as the tables have them."""
    return tuple(
        _number(what, told, f"{told[0]}, in the mean complete profiled step.", _mean_cases, "per_step", _ALSO[what])
        for what, told in _told(run).items()
    )


def whole_numbers(run: Run) -> tuple[Number, ...]:
    found = []
    for what, told in _told(run).items():
        words = _whole_words(what) if what == "span" else told[0]
        found.append(_number(what, told, f"{words}, over the whole windows of a rank.", _whole_cases, "breakdown", ()))
    return tuple(found)


def _told(run: Run) -> dict[str, tuple[str, str]]:
    """What each class of time is, and what it leaves out: waiting is measured in one of two ways."""
    return _SAID | {"wait": _IN_RENDEZVOUS} if in_rendezvous(run) else _SAID


def _whole_words(what: str) -> str:
    return "From the first device event of a window to the end of its last" if what == "span" else _SAID[what][0]


def said(what: str) -> str:
    """What a class of time is, in words."""
    return _whole_words(what)


def _number(
    what: str,
    told: tuple[str, str],
    definition: str,
    cases: Callable[[Asked, str], tuple[Case, ...]],
    place: str,
    also: tuple[str, ...],
) -> Number:
    is_whole = place == "breakdown"
    excludes = f"{told[1]}; {'the time between windows' if is_whole else PROFILED}"
    return Number(
        name=f"breakdown.{what}" if is_whole else what,
        unit="ns",
        definition=definition,
        excludes=excludes,
        cases=lambda asked: cases(asked, what),
        also=(f"{place}.{what}_ns", f"ranks.{place}.{what}_ns", *(() if is_whole else (f"{place}.{what}",)), *also),
        by=("rank",) if is_whole else ("rank", "step"),
        no_step=f"it is over whole windows; {what} can",
    )


def _mean_cases(asked: Asked, what: str) -> tuple[Case, ...]:
    """The mean complete step of each rank; where no rank has one, the whole windows, as on the screen."""
    found = counting(asked)
    if asked.step is None and not has_steps(asked.run):
        return tuple(_without_steps(case) for case in _whole_cases(asked, what))
    return _cases(asked, what, found, "per_step", lambda mine: means(mine) if any(one.steps for one in mine) else None)


def _without_steps(case: Case) -> Case:
    return case if case.figure is None else replace(case, notes=(*case.notes, NO_STEPS))


def has_steps(run: Run) -> bool:
    """Whether any window holds a complete step with device work."""
    return any(rank.per_step is not None for rank in breakdown(run))


def _whole_cases(asked: Asked, what: str) -> tuple[Case, ...]:
    found = counting(asked, is_whole=True)
    return _cases(asked, what, found, "breakdown", lambda mine: totals(mine, "over whole windows"))


def _cases(
    asked: Asked,
    what: str,
    found: Sequence[Counting],
    where: str,
    figures: Callable[[Sequence[Counting]], dict[str, Figure] | None],
) -> tuple[Case, ...]:
    cases = []
    for rank in breakdown(asked.run):
        if not asked.has(rank.rank):
            continue
        mine = [one for one in found if one.window.rank == rank.rank]
        known = figures(mine) if mine else None
        cases.append(_case(asked, what, rank.rank, mine, known, where))
    return tuple(cases)


def _case(
    asked: Asked, what: str, rank: int, mine: Sequence[Counting], known: dict[str, Figure] | None, where: str
) -> Case:
    of = f"rank {rank}"
    windows = [window for window in asked.run.windows if window.rank == rank]
    figure = known.get(what) if known is not None else None
    if figure is None:
        why = _why(asked, what, rank, has_figures=known is not None)
        return Case(of, None, why=why, rank=rank, events=events(windows))
    is_alone = asked.step is None
    return Case(
        of=of,
        figure=figure,
        json=f"ranks[rank={rank}].{where}.{what}_ns" if is_alone else "",
        rank=rank,
        places=tuple(place(one.window, one.steps) for one in mine),
        evidence=behind(asked, what, mine),
        events=events(windows),
        notes=_notes(asked, what, mine),
    )


def _why(asked: Asked, what: str, rank: int, *, has_figures: bool) -> str:
    windows = [window for window in asked.run.windows if window.rank == rank]
    if all(window.device_kind == "none" for window in windows):
        reasons = dict.fromkeys(why for window in windows for of, why in window.cannot_say if of != "wait_ns")
        return "; ".join(reasons) or "its trace holds no device work"
    if not has_figures:
        return _NO_STEP if asked.step is None else f"step {asked.step} lies wholly in no window of this rank"
    reasons = dict.fromkeys(why for of, why in doubts(asked.run) if of == f"{what}_ns")
    return "; ".join(reasons) or "the trace does not tell"


def behind(asked: Asked, what: str, mine: Sequence[Counting]) -> Evidence:
    """The spans that a class of time is made of, or the stretches without any."""
    if what == "idle":
        return gaps([(one.window, _clipped(one)) for one in mine])
    if what == "wait":
        return _waits(asked, mine)
    picks = [Pick.within(one.window, rows_of(one.window.spans, *_KINDS[what]), _where(what, one)) for one in mine]
    return evidence(
        picks, {"span": "spans of device work", "busy": "spans of device work"}.get(what, f"{_noun(what)} spans")
    )


def _noun(what: str) -> str:
    return "collective" if what in ("hidden", "exposed") else what


def _clipped(one: Counting) -> Intervals:
    """Idle time is within the window, whatever spans say."""
    return clipped(one.bounds, one.window.start_ns, one.window.end_ns) if one.is_whole else one.bounds


def _where(what: str, one: Counting) -> Intervals:
    compute = one.window.spans.busy(Kind.COMPUTE)
    if what == "hidden":
        return one.bounds & compute
    return one.bounds - compute if what == "exposed" else one.bounds


def _waits(asked: Asked, mine: Sequence[Counting]) -> Evidence:
    """Collectives by how long they waited, as matching tells; else the waits that the trace recorded."""
    matched = waiting(asked.run).windows
    picks = []
    for one in mine:
        waits, spans = matched.get(one.window), one.window.spans
        if waits is None or meets(one.window):
            picks.append(Pick.within(one.window, rows_of(spans, Kind.WAIT), one.bounds))
        else:
            everyone = np.ones(len(waits.row), dtype=bool)
            picks.append(Pick.within(one.window, waits.row, one.bounds & waits.waiting(everyone)))
    return evidence(picks, "spans in which it waits")


def _notes(asked: Asked, what: str, mine: Sequence[Counting]) -> tuple[str, ...]:
    notes = [] if asked.step is None else [f"of step {asked.step} alone, not the mean"]
    notes += ["spans at the same time are joined before they are added"] if what in _KINDS and what != "span" else []
    if any(one.window.device_kind == "cpu" for one in mine) and what in ("compute", "hidden", "exposed", "busy"):
        notes.append("on a CPU rank compute is operators, without the waits inside them")
    return tuple(notes)


GROUP = Group("where a step of each rank goes", 1, numbers)
