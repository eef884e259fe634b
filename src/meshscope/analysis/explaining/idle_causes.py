"""Explains why a device was idle: the causes, which add up to the idle time of the windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from meshscope.analysis.explaining.adding import asked_of, bounds_of, over_windows
from meshscope.analysis.explaining.evidence import events, place, stepped, stretches
from meshscope.analysis.explaining.figure import QUOTIENT, SUM, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.host_activity import DATA, LAUNCHING, MEMORY, OPERATORS, OPTIMIZER, PYTHON, SYNC, Activity
from meshscope.analysis.idle import (
    CAUSES,
    HOST_LATE,
    PAUSE_NS,
    QUEUED,
    UNKNOWN,
    WAIT,
    all_of,
    before_work,
    idle,
    idle_when,
    joined,
    measure,
    pauses_of,
)
from meshscope.intervals import EMPTY, Intervals
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import duration

EXCLUDES = "the time between windows; time in which a collective only waits"
NO_WORK = "its trace holds no device work"
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
_PLACES = {
    "": ("causes", ", over all that was traced of it"),
    "in_steps.": ("step_causes", ", within complete steps"),
    "pauses.": ("pause_causes", f", in stretches of {duration(PAUSE_NS)} and longer"),
    "pauses_in_steps.": (
        "step_pause_causes", f", in stretches of {duration(PAUSE_NS)} and longer, within complete steps"),
}  # fmt: skip
_RULE = (
    "a stretch is cut at the launch of the work that ends it: until the call begins the host is late, and what its "
    "thread does then is the cause; during the call it is the launch, after it the work is queued"
)
_RULE_CPU = (
    "nothing is launched on a CPU rank: a stretch is charged to its recorded waits, then to what its thread does"
)


def numbers(run: Run) -> tuple[Number, ...]:
    known = {cause for one in idle(run) for cause in (*one.causes, *one.step_causes)}
    causes = [
        _number(cause, where)
        for where in _PLACES
        for cause in CAUSES
        if cause in known
    ]  # fmt: skip
    every = Number(
        "idle.total", "ns",
        "Time of a rank's windows without device work, over all that was traced: its causes add up to it.",
        EXCLUDES,
        partial(_cases, causes=CAUSES, name="idle_ns"), ("idle.idle_ns",), by=("rank", "step"),
    )  # fmt: skip
    late = Number(
        "idle.host_late", "ns",
        "The part of a rank's idle time, over all that was traced, in which its host had not launched what came next.",
        EXCLUDES, partial(_cases, causes=HOST_LATE, name="host_late_ns"), ("idle.host_late_ns",), by=("rank", "step"),
    )  # fmt: skip
    means = [_mean(cause) for cause in CAUSES if cause in known]
    return (every, late, *causes, *means)


def _number(cause: str, where: str) -> Number:
    field, words = _PLACES[where]
    return Number(
        name=f"idle.{where}{cause}",
        unit="ns",
        definition=f"The part of a rank's idle time in which {_WORDS[cause]}{words}.",
        excludes=EXCLUDES,
        cases=partial(_cases, causes=(cause,), name=f"{field}.{cause}"),
        also=(f"idle.{field}.{cause}",),
        by=("rank",) if where else ("rank", "step"),
        no_step=f"idle.{cause} can",
        is_listed=not where,
    )


def _mean(cause: str) -> Number:
    return Number(
        f"idle.{cause}.per_step", "ns", f"Idle time of a rank's mean step in which {_WORDS[cause]}.", EXCLUDES,
        partial(_mean_cases, cause=cause), (), no_step=f"it is a mean over steps; idle.{cause} can",
    )  # fmt: skip


def _mean_cases(asked: Asked, *, cause: str) -> tuple[Case, ...]:
    return tuple(_per_step(asked, case) for case in _cases(asked, causes=(cause,), name=f"step_causes.{cause}"))


def _per_step(asked: Asked, case: Case) -> Case:
    windows = [window for window in asked.run.windows if window.rank == case.rank and measure(window) is not None]
    steps = over_windows("complete steps", [(window, window) for window in windows], _steps, "steps")
    if case.figure is None or not steps.value:
        return replace(case, figure=None, why=case.why or "no step lies wholly in a window", evidence=None)
    return replace(case, figure=made("in a step", QUOTIENT, case.figure, steps), json="")


def _steps(window: Window) -> int:
    return len(window.steps)


def _cases(asked: Asked, *, causes: Sequence[str], name: str) -> tuple[Case, ...]:
    ranks: dict[int, list[Window]] = {}
    for window in asked_of(asked):
        ranks.setdefault(window.rank, []).append(window)
    if not ranks:
        return (Case("all ranks", None, why="nothing was traced"),)
    return tuple(_case(asked, rank, ranks[rank], causes, name) for rank in sorted(ranks))


def _case(asked: Asked, rank: int, windows: list[Window], causes: Sequence[str], name: str) -> Case:
    found = [(window, part) for window in windows if (part := measure(window)) is not None]
    why = next((part.why for _, part in found if part.why), "") if found else NO_WORK
    of = f"rank {rank}"
    if why:
        return Case(of, None, why=why, rank=rank, events=events(windows))
    when = [(window, _when(asked, window, name)) for window, _ in found]
    figure = _figure(when, causes)
    if len(causes) == 1 and not figure.value:  # the JSON leaves out causes that took no time
        return Case(of, None, why="no idle time is charged to it", rank=rank, events=events(windows))
    is_cpu = any(window.device_kind == "cpu" for window in windows)
    return Case(
        of=of,
        figure=figure,
        json=f"idle[rank={rank}].{name}" if asked.step is None else "",
        rank=rank,
        places=tuple(place(window, None if asked.step is None else (asked.step,)) for window, _ in found),
        evidence=stretches([(window, _joined(causes, here)) for window, here in when], "stretches without device work"),
        events=events(windows),
        notes=(_RULE_CPU if is_cpu else _RULE,),
    )


def _when(asked: Asked, window: Window, name: str) -> Activity:
    """When each cause held, within what the number is of."""
    found, early = idle_when(window), before_work(window)
    if asked.step is not None:
        bounds = bounds_of(asked, window)
        return {cause: when & bounds for cause, when in joined(found, early).items()}
    pauses = pauses_of(all_of(found))
    if name.startswith("step_"):
        inside = stepped(window)
        pauses |= pauses_of(all_of(early))
        found = {cause: when & inside for cause, when in joined(found, early).items()}
    if "pause_causes" in name:
        found = {cause: when & pauses for cause, when in found.items()}
    return found


def _joined(causes: Sequence[str], when: Activity) -> Intervals:
    joined = EMPTY
    for cause in causes:
        joined |= when.get(cause, EMPTY)
    return joined


def _figure(when: Sequence[tuple[Window, Activity]], causes: Sequence[str]) -> Figure:
    each = [over_windows(cause, when, partial(_total_ns, cause)) for cause in causes]
    if len(each) == 1:
        return each[0]
    known = [figure for figure in each if figure.value]
    return made("idle", SUM, *known) if known else Figure("idle", 0)


def _total_ns(cause: str, when: Activity) -> int:
    return when.get(cause, EMPTY).total_ns


GROUP = Group("why devices were idle", 8, numbers, heads=("idle.",))
