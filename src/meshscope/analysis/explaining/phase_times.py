"""Explains the phases of a step: which device work the host asked for in each, and by which marks that is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from meshscope.analysis.explaining.adding import asked_of, bounds_of, is_all, over_windows
from meshscope.analysis.explaining.evidence import Pick, events, evidence, place, stepped
from meshscope.analysis.explaining.figure import QUOTIENT, SUM, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.host_activity import host_named
from meshscope.analysis.phase_names import BACKWARD, FORWARD, IN_ENGINE, OPTIMIZER, OTHER, PHASES, UNKNOWN
from meshscope.analysis.phases import IN_BACKWARD, IN_OPTIMIZER, measure, phase_of, phases
from meshscope.analysis.places import places
from meshscope.intervals import Intervals
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import counted

_SAID = {
    "busy": ("busy_ns", "ns", "Device time with work that was asked for in PHASE, added up over ranks"),
    "compute": ("compute_ns", "ns", "Device time with compute that was asked for in PHASE, added up over ranks"),
    "collective": ("collective_ns", "ns", "Device time with collectives that were asked for in PHASE"),
    "copy": ("copy_ns", "ns", "Device time with copies that were asked for in PHASE, added up over ranks"),
    "count": ("works", "pieces of work", "How many pieces of device work were asked for in PHASE"),
    "share": ("frac", "frac", "The device time of PHASE as a share of that of all phases, added up"),
    "per_step": (
        "",
        "ns",
        "Device time in complete steps with work that was asked for in PHASE, in the mean step of a rank",
    ),
}
_NAMED = {OTHER: "none of forward, backward and optimizer", UNKNOWN: "an unknown phase"}
_EXCLUDES = "a second piece of the same phase at the same time; phases overlap where streams do"
_TORCH = {
    FORWARD: "asked for before a backward pass of the same step, outside autograd and optimizers (the loss and the "
    "batch's copy included)",
    BACKWARD: "asked for inside autograd's evaluation of a function, the DDP reducer, or FSDP's backward hooks",
    OPTIMIZER: "asked for inside Optimizer.step or Optimizer.zero_grad",
    OTHER: "asked for after the last backward pass of the step, outside autograd and optimizers",
    UNKNOWN: "its launch is not in the trace",
}
_JAX = "an operation's phase is told by its path in the program: jvp is forward, transpose backward, the optimizer's "\
    "scope optimizer"  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Of:
    """One phase of one window, or of one of its steps."""

    works: int
    compute: Intervals
    collective: Intervals
    copy: Intervals

    @property
    def busy(self) -> Intervals:
        return self.compute | self.collective | self.copy


_Found = Sequence[tuple[Window, _Of]]


def numbers(run: Run) -> tuple[Number, ...]:
    return tuple(_number(phase.name, what) for phase in phases(run) for what in _SAID)


def _number(phase: str, what: str) -> Number:
    field, unit, words = _SAID[what]
    called = f"phases.{phase}"
    return Number(
        name=called if what == "busy" else f"{called}.{what}",
        unit=unit,
        definition=f"{words.replace('PHASE', _NAMED.get(phase, phase))}.",
        excludes=_EXCLUDES,
        cases=partial(_cases, phase=phase, what=what),
        also=(*((f"{called}.{field}",) if field else ()), *((f"phases.{phase}.busy",) if what == "busy" else ())),
        by=("rank",) if what == "per_step" else ("rank", "step"),
        no_step=f"it is a mean over steps; {called} can",
    )


def _parts(asked: Asked, at: int) -> _Found:
    """A phase in each window that marks phases; of a step that was asked about, what lies in it."""
    found = []
    for window in asked_of(asked):
        told = measure(window)
        if told is None:
            continue
        part = _Of(told[at].works, told[at].compute, told[at].collective, told[at].copy)
        if asked.step is not None:
            bounds = bounds_of(asked, window)
            works = int((_pick(window, at, bounds).share_ns > 0).sum())
            part = _Of(works, part.compute & bounds, part.collective & bounds, part.copy & bounds)
        found.append((window, part))
    return found


def _pick(window: Window, at: int, bounds: Intervals) -> Pick:
    number = phase_of(window)
    row = places(window).row
    return Pick.within(window, row[number == at] if number is not None else row[:0], bounds)


def _cases(asked: Asked, *, phase: str, what: str) -> tuple[Case, ...]:
    at = PHASES.index(phase)
    found = _parts(asked, at)
    windows = [window for window, _ in found]
    if not found:
        return (Case(phase, None, why="no trace there marks phases", rank=asked.rank),)
    figure = _figure(asked, found, what)
    if figure is None:
        why = "no step lies wholly in a window" if what == "per_step" else "no phase has any device time"
        return (Case(phase, None, why=why, rank=asked.rank),)
    return (
        Case(
            of=phase if asked.rank is None else f"{phase}, rank {asked.rank}",
            figure=figure,
            json=f"phases[name={phase}].{_SAID[what][0]}" if is_all(asked) and _SAID[what][0] else "",
            rank=asked.rank,
            places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
            evidence=evidence([_pick(window, at, bounds_of(asked, window)) for window in windows], "pieces of work"),
            events=events(windows),
            notes=_notes(asked, phase, windows),
        ),
    )


def _busy(what: str, part: _Of) -> int:
    return int(getattr(part, what).total_ns)


def _figure(asked: Asked, found: _Found, what: str) -> Figure | None:
    if what == "count":
        return over_windows("pieces of work", found, lambda part: part.works, "pieces of work")
    if what == "per_step":
        return _mean(found)
    if what != "share":
        return over_windows(what, found, partial(_busy, what))
    mine = over_windows("busy in it", found, partial(_busy, "busy"))
    each = [over_windows(name, _parts(asked, at), partial(_busy, "busy")) for at, name in enumerate(PHASES)]
    every = made("busy in all phases, added up", SUM, *(figure for figure in each if figure.value))
    return made("share of all phases", QUOTIENT, mine, every, unit="frac") if every.value else None


def _mean(found: _Found) -> Figure | None:
    steps = over_windows("steps, over ranks", [(window, window) for window, _ in found], _steps, "steps")
    inside = [(window, part.busy & stepped(window)) for window, part in found]
    total = over_windows("busy in complete steps", inside, _length_ns)
    return made("in a step", QUOTIENT, total, steps) if steps.value else None


def _steps(window: Window) -> int:
    return len(window.steps)


def _length_ns(when: Intervals) -> int:
    return when.total_ns


def _notes(asked: Asked, phase: str, windows: Sequence[Window]) -> tuple[str, ...]:
    notes = []
    if any(window.framework != "torch" for window in windows):
        notes.append(_JAX)
    torch = [window for window in windows if window.framework == "torch"]
    if torch:
        notes.append(f"{phase}: {_TORCH[phase]}")
        marks = {
            "evaluation of a function by autograd": _marks(torch, IN_ENGINE.search),
            "mark of a backward pass in all": _marks(torch, IN_BACKWARD.search),
            "mark of an optimizer": _marks(torch, IN_OPTIMIZER.search),
        }
        told = (f"{counted(count, name, name.replace(' ', 's ', 1))}" for name, count in marks.items())
        notes.append(f"told by {', '.join(told)} on the host")
    return (*notes, *((f"time within step {asked.step}",) if asked.step is not None else ()))


def _marks(windows: Sequence[Window], finds: Callable[[str], object]) -> int:
    return sum(int(np.count_nonzero(host_named(window.spans, finds))) for window in windows)


GROUP = Group("phases of a step", 13, numbers, heads=("phases.",))
