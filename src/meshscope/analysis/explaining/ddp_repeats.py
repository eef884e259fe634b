"""Explains DDP: its pace, and what goes out more often than it needs to or is looked for in vain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from meshscope.analysis.ddp import broadcasts, repeated, searches
from meshscope.analysis.explaining.adding import (
    Ints,
    asked_of,
    bounds_of,
    is_all,
    is_called_within,
    is_within,
    over_windows,
)
from meshscope.analysis.explaining.ddp_passes import NO_DDP, Passed, passed, whose
from meshscope.analysis.explaining.evidence import Pick, delays, events, evidence, place
from meshscope.analysis.explaining.figure import PRODUCT, QUOTIENT, SUM, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Evidence, Group, Number
from meshscope.analysis.passes import Pass, is_ddp, passes
from meshscope.intervals import Intervals
from meshscope.intervals import window as cut
from meshscope.run import Run
from meshscope.spans import Window

_PARTS = {
    "device_step": ("device_step_ns", "ns", "How long a step takes a device, from pass to pass.", "the first pass"),
    "passes_per_step": ("passes_per_step", "passes", "Backward passes with all-reduces for each complete step of a "
                        "rank.", "passes outside complete steps"),
    "repeats": ("repeats", "optimizer steps", "Optimizer steps before which the same gradients were all-reduced more "
                "than once: accumulation without no_sync.", "passes whose sizes are not known"),
    "repeated": ("repeated", "passes", "Passes whose all-reduces were not needed.", "the last pass before each step"),
    "repeated_exposed": ("repeated_ns", "ns", "The exposed time of all-reduces that were not needed, added up over "
                         "ranks and windows.", "what of them was hidden"),
    "searches": ("searches", "searches", "How often DDP searched for unused parameters.", "other host work"),
    "search": ("search_ns", "ns", "The host's time in searches for unused parameters, added up over ranks and "
               "windows.", "other host work"),
    "buffers": ("buffers", "broadcasts", "How many broadcasts of buffers there are.", "other collectives"),
    "buffers_exposed": ("buffers_ns", "ns", "The exposed time of broadcasts of buffers, added up over ranks and "
                        "windows.", "what of it was hidden"),
}  # fmt: skip
_WHOLE = ("device_step", "passes_per_step", "repeats", "repeated", "repeated_exposed")


def numbers(run: Run) -> tuple[Number, ...]:
    if not any(is_ddp(window) for window in run.windows):
        return ()
    return tuple(
        Number(
            name=f"ddp.{name}",
            unit=unit,
            definition=said,
            excludes=excludes,
            cases=partial(_cases, name=name),
            also=(f"ddp.{field}",) if field != name else (),
            by=("rank",) if name in _WHOLE else ("rank", "step"),
            no_step="it compares passes of several steps",
        )
        for name, (field, unit, said, excludes) in _PARTS.items()
    )


def _cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    windows = [window for window in asked_of(asked) if is_ddp(window)]
    found = passed(asked)
    if not found:
        return (Case(whose(asked), None, why=NO_DDP, rank=asked.rank),)
    figure = _part(asked, windows, name)
    if figure is None:
        return (Case(whose(asked), None, why=_why(windows), rank=asked.rank),)
    return (
        Case(
            of=whose(asked),
            figure=figure,
            json=f"ddp.{_PARTS[name][0]}" if is_all(asked) else "",
            rank=asked.rank,
            places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
            evidence=_spans(asked, windows, name),
            events=events(windows),
        ),
    )


def _why(windows: Sequence[Window]) -> str:
    if not any(window.steps for window in windows):
        return "no step lies wholly in a window"
    return "no window holds two passes"


def _part(asked: Asked, windows: Sequence[Window], name: str) -> Figure | None:
    if name in ("device_step", "passes_per_step"):
        return _pace(windows, name)
    if name in ("repeats", "repeated", "repeated_exposed"):
        return _repeats(windows, name)
    find = searches if name in ("searches", "search") else broadcasts
    told = [(window, _narrowed(asked, window, find)) for window in windows]
    if name in ("searches", "buffers"):
        return over_windows(name, told, lambda one: len(one[0]), _PARTS[name][1])
    return over_windows(name, told, lambda one: one[1].total_ns)


def _narrowed(asked: Asked, window: Window, find: Callable[[Window], tuple[Ints, Intervals]]) -> tuple[Ints, Intervals]:
    """Searches are the host's, by its own marks of the step; broadcasts are the device's."""
    rows, when = find(window)
    if asked.step is None:
        return rows, when
    if find is searches:
        called = rows[is_called_within(asked, window, window.spans.start_ns[rows])]
        start_ns, end_ns = window.step_ns[window.steps.index(asked.step)].tolist()
        return called, cut(when, start_ns, end_ns)
    return rows[is_within(asked, window, window.spans.start_ns[rows])], when & bounds_of(asked, window)


def _pace(windows: Sequence[Window], name: str) -> Figure | None:
    synced = [(window, [one for one in passes(window) if len(one.row)]) for window in windows]
    inside = over_windows("passes in complete steps", synced, _in_steps, "passes")
    steps = over_windows("steps, over ranks", [(window, window) for window in windows], _steps, "steps")
    if not steps.value:
        return None
    each = made("passes in a step", QUOTIENT, inside, steps, unit="passes")
    if name == "passes_per_step":
        return each
    several = [(window, some) for window, some in synced if len(some) > 1]
    apart = over_windows("from the first pass's last computation to the last one's", several, _apart)
    if not apart.value:
        return None
    between = over_windows("passes after the first", several, _after_first, "passes")
    return made("step of a device", PRODUCT, made("from pass to pass", QUOTIENT, apart, between), each)


def _in_steps(some: Sequence[Pass]) -> int:
    return sum(one.step >= 0 for one in some)


def _steps(window: Window) -> int:
    return len(window.steps)


def _apart(some: Sequence[Pass]) -> int:
    return some[-1].computed_ns - some[0].computed_ns


def _after_first(some: Sequence[Pass]) -> int:
    return len(some) - 1


def _repeats(windows: Sequence[Window], name: str) -> Figure:
    unit = _PARTS[name][1]
    told = [(window, repeated([window])) for window in windows]
    if name == "repeats":
        return over_windows("optimizer steps", told, lambda one: one[0], unit)
    if name == "repeated":
        return over_windows("passes that need not have all-reduced", told, lambda one: len(one[1]), unit)
    extra = [Passed(window, one, None) for _, (_, some) in told for window, one in some]
    if not extra:
        return Figure("no such pass", 0)
    return made("exposed in passes that need not have", SUM,
                *(Figure(each.label, each.one.exposed.total_ns) for each in extra))  # fmt: skip


def _spans(asked: Asked, windows: Sequence[Window], name: str) -> Evidence | None:
    if name in ("searches", "search", "buffers", "buffers_exposed"):
        find = searches if name in ("searches", "search") else broadcasts
        told = [(window, *_narrowed(asked, window, find)) for window in windows]
        return evidence([Pick.within(window, rows, when) for window, rows, when in told], "spans")
    if name in ("repeated", "repeated_exposed"):
        picks = [Pick.within(window, one.row, one.exposed) for window, one in repeated(windows)[1]]
        return evidence(picks, "all-reduces that were not needed")
    rows = [
        (window, np.concatenate([one.row for one in passes(window)]))
        for window in windows
        if passes(window)
    ]  # fmt: skip
    lengths = [(window, row, window.spans.end_ns[row] - window.spans.start_ns[row]) for window, row in rows]
    return delays(lengths, "all-reduces of these passes")


GROUP = Group("DDP: pace and repeated work", 28, numbers, heads=("ddp.",))
