"""Explains why a device was idle: the causes, which add up to the idle time of the windows."""

from __future__ import annotations

from functools import partial

from meshscope.analysis.explaining.evidence import events, gaps, labels, place
from meshscope.analysis.explaining.figure import SUM, Figure, made, total
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.host_activity import DATA, LAUNCHING, MEMORY, OPERATORS, OPTIMIZER, PYTHON, SYNC
from meshscope.analysis.idle import CAUSES, QUEUED, UNKNOWN, WAIT, Idle, idle, measure
from meshscope.intervals import EMPTY, Intervals, complement
from meshscope.run import Run
from meshscope.spans import Window

_EXCLUDES = "the time between windows; time in which a collective only waits"
_WORDS = {
    DATA: "the host loaded data",
    SYNC: "the host synchronized",
    MEMORY: "the host allocated or freed memory",
    LAUNCHING: "the host was in launch calls",
    OPTIMIZER: "the host was in the optimizer",
    OPERATORS: "the host was in operators",
    PYTHON: "the host ran what is not recorded, such as Python",
    WAIT: "the rank was in recorded waits",
    QUEUED: "the next work was launched and had not started",
    UNKNOWN: "the trace does not show what the next work waited for",
}
_NO_WORK = "its trace holds no device work"


def numbers(run: Run) -> tuple[Number, ...]:
    known = {cause for one in idle(run) for cause in one.causes}
    causes = tuple(
        Number(f"idle.{cause}", "ns", f"The part of a rank's idle time in which {_WORDS[cause]}.", _EXCLUDES,
               partial(_cases, cause=cause), (f"idle.causes.{cause}",))
        for cause in CAUSES
        if cause in known
    )  # fmt: skip
    every = Number(
        "idle.total", "ns", "Time of a rank's windows without device work: its causes add up to it.", _EXCLUDES,
        partial(_cases, cause=""), ("idle.idle_ns",),
    )  # fmt: skip
    return (every, *causes)


def _cases(asked: Asked, *, cause: str) -> tuple[Case, ...]:
    windows: dict[int, list[Window]] = {}
    for window in asked.run.windows:
        if asked.has(window.rank):
            windows.setdefault(window.rank, []).append(window)
    if not windows:
        return (Case("all ranks", None, why="nothing was traced"),)
    return tuple(_case(rank, windows[rank], cause) for rank in sorted(windows))


def _case(rank: int, windows: list[Window], cause: str) -> Case:
    found = [(window, part) for window in windows if (part := measure(window)) is not None]
    why = next((part.why for _, part in found if part.why), "") if found else _NO_WORK
    of = f"rank {rank}"
    if why:
        return Case(of, None, why=why, rank=rank, events=events(windows))
    figure = _cause(cause, found) if cause else _total(found)
    if cause and not figure.value:  # the JSON leaves out causes that took no time
        return Case(of, None, why="no idle time is charged to it", rank=rank, events=events(windows))
    working = [(window, _span(window)) for window, _ in found]
    return Case(
        of=of,
        figure=figure,
        json=f"idle[rank={rank}].{f'causes.{cause}' if cause else 'idle_ns'}",
        rank=rank,
        places=tuple(place(window) for window, _ in found),
        evidence=gaps(working),
        events=events(windows),
        notes=("the stretches are those of all causes",) if cause else (),
    )


def _span(window: Window) -> Intervals:
    return complement(EMPTY, window.start_ns, window.end_ns)


def _cause(cause: str, found: list[tuple[Window, Idle]]) -> Figure:
    names = labels([window for window, _ in found])
    leaves = [Figure(called, part.causes.get(cause, 0)) for (_, part), called in zip(found, names, strict=True)]
    return total(cause, leaves)


def _total(found: list[tuple[Window, Idle]]) -> Figure:
    known = [cause for cause in CAUSES if any(part.causes.get(cause) for _, part in found)]
    causes = [_cause(cause, found) for cause in known]
    return made("idle", SUM, *causes) if causes else Figure("idle", 0)


GROUP = Group("why devices were idle", 8, numbers)
