"""Explains kernels and operators by their names: how often each was called, how long that took, and its share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from meshscope.analysis.explaining.adding import Ints, asked_of, in_steps, is_all, is_within, over_windows
from meshscope.analysis.explaining.evidence import Pick, events, evidence, place
from meshscope.analysis.explaining.figure import LARGEST, MEDIAN, P95, QUOTIENT, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.idle import WORK
from meshscope.analysis.in_steps import begun_in_steps
from meshscope.analysis.operations import Operation, operations, own_calls
from meshscope.analysis.parts import per_run, per_window
from meshscope.intervals import Intervals, union
from meshscope.kinds import Kind
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import NS_PER_S, UNKNOWN, counted, ranges

_SAID = {
    "total": ("total_ns", "ns", "What all calls of NAME took, added up over calls and ranks"),
    "count": ("count", "calls", "How many calls of NAME there are, over all ranks"),
    "mean": ("mean_ns", "ns", "The mean length of a call of NAME"),
    "median": ("median_ns", "ns", "The length that half of the calls of NAME do not exceed"),
    "p95": ("p95_ns", "ns", "The length that 95 % of the calls of NAME do not exceed"),
    "max": ("max_ns", "ns", "The length of the longest call of NAME"),
    "share": ("frac", "frac", "The time of all calls of NAME as a share of all device work, both added up over calls"),
    "per_step": (
        "per_step_ns",
        "ns",
        "What the calls of NAME take that begin in a complete step, in the mean step of a rank",
    ),
    "per_step_count": ("", "calls", "How many calls of NAME begin in the mean complete step of a rank"),
    "per_step_share": (
        "",
        "frac",
        "The calls of NAME that begin in complete steps as a share of all device work that does",
    ),
}
_SERIES = {"median": MEDIAN, "p95": P95, "max": LARGEST}
_MEANS = ("per_step", "per_step_count", "per_step_share")
_EXCLUDES = "what ran at the same time: two calls at once count twice here, and once in compute and busy"

MOST_TOLD = 20
"""So many stand in ``analyze --json``, the longest first."""


@dataclass(frozen=True, eq=False)
class Called:
    """The calls of one window: the first ``row`` of each and how long it took by itself (ns), both of shape (k,)."""

    row: Ints
    length_ns: Ints


@per_window
def calls(window: Window) -> Called:
    """All device work, call by call."""
    spans = window.spans
    rows = np.flatnonzero(np.isin(spans.kind, WORK))
    if len(rows) and window.framework == "torch" and window.device_kind == "cpu":
        return Called(*own_calls(spans, rows))
    return Called(rows, (spans.end_ns - spans.start_ns)[rows])


_Found = Sequence[tuple[Window, Called]]


@per_run
def _every(run: Run) -> tuple[Operation, ...]:
    return operations(run)


def numbers(run: Run) -> tuple[Number, ...]:
    """The total of each is listed where reports tell it, its other figures are not: they go by ``NAME.median``."""
    names = dict.fromkeys(found.name for found in _every(run))
    return tuple(
        _number(name, what, is_listed=what == "total" and at < MOST_TOLD)
        for at, name in enumerate(names)
        for what in _SAID
    )


def _number(name: str, what: str, *, is_listed: bool) -> Number:
    field, unit, said = _SAID[what]
    called = f"operations.{name or UNKNOWN}"
    also = (f"operation:{name}",) if what == "total" else ()
    is_mean = what.startswith("per_step")
    return Number(
        name=called if what == "total" else f"{called}.{what}",
        unit=unit,
        definition=f"{said.replace('NAME', name or 'what has no name')}.",
        excludes=_EXCLUDES,
        cases=partial(_cases, name=name, what=what),
        also=(*((f"{called}.{field}",) if field else ()), *also),
        by=("rank",) if is_mean else ("rank", "step"),
        no_step=f"it is a mean over steps; {called} can",
        is_listed=is_listed,
    )


def _cases(asked: Asked, *, name: str, what: str) -> tuple[Case, ...]:
    """One for each kind of work that has the name."""
    told = [(at, found) for at, found in enumerate(_every(asked.run)) if found.name == name]
    everything = _everything(asked)
    return tuple(_case(asked, at, found, what, everything) for at, found in told)


def _everything(asked: Asked) -> _Found:
    """All calls of each window that was asked about; those that begin in the step where one was."""
    found = []
    for window in asked_of(asked):
        called = calls(window)
        keep = is_within(asked, window, window.spans.start_ns[called.row])
        found.append((window, Called(called.row[keep], called.length_ns[keep])))
    return found


def _of(operation: Operation, everything: _Found) -> list[tuple[Window, Called]]:
    found = []
    for window, called in everything:
        spans = window.spans
        number = {at for at, name in enumerate(spans.names) if name == operation.name}
        number |= set() if operation.name else {-1}
        keep = np.isin(spans.name[called.row], list(number)) & (spans.kind[called.row] == Kind[operation.kind.upper()])
        if keep.any():
            found.append((window, Called(called.row[keep], called.length_ns[keep])))
    return found


def _case(asked: Asked, at: int, operation: Operation, what: str, everything: _Found) -> Case:
    found = _of(operation, everything)
    windows = [window for window, _ in found]
    of = f"{operation.kind} by that name" + ("" if asked.rank is None else f", rank {asked.rank}")
    figure = _mean(asked, what, found, everything) if what in _MEANS else _figure(what, found, everything)
    if figure is None and what in _MEANS:
        return Case(of, None, why="no step lies wholly in a window", rank=asked.rank)
    if figure is None:
        return Case(of, None, why=_why(asked), rank=asked.rank)
    picks = [Pick(window, called.row, _where(window, called), called.length_ns) for window, called in found]
    return Case(
        of=of,
        figure=figure,
        json=f"operations.top[{at}].{_SAID[what][0]}"
        if is_all(asked) and at < MOST_TOLD and what not in _MEANS
        else "",
        rank=asked.rank,
        places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
        evidence=evidence(picks, "calls"),
        events=events(windows),
        notes=_notes(asked, found),
    )


def _why(asked: Asked) -> str:
    return "nothing was traced" if is_all(asked) else "no call of it begins there"


def _where(window: Window, called: Called) -> Intervals:
    return union(window.spans.start_ns[called.row], window.spans.end_ns[called.row])


def _notes(asked: Asked, found: _Found) -> tuple[str, ...]:
    windows = [window for window, _ in found]
    ranks = sorted({window.rank for window in windows})
    notes = [f"on {counted(len(ranks), 'rank')} ({ranges(ranks)})"]
    if asked.step is not None:
        notes.append(f"calls that begin in step {asked.step}, between the marks of its host")
    elif said := in_steps(windows, [window.spans.start_ns[called.row] for window, called in found]):
        notes.append(f"calls begin: {said}")
    if any(window.framework == "torch" and window.device_kind == "cpu" for window in windows):
        notes.append("operators call operators: a call's length is what it does itself, outside those in it")
    return tuple(notes)


def _figure(what: str, found: _Found, everything: _Found) -> Figure | None:
    count = over_windows("calls", found, lambda called: len(called.row), "calls")
    total = over_windows("all its calls", found, lambda called: int(called.length_ns.sum()))
    if what in ("count", "total"):
        return count if what == "count" else total
    if not count.value:
        return None
    if what == "mean":
        return made("mean of its calls", QUOTIENT, total, count)
    if what == "share":
        work = over_windows("all device work", everything, lambda called: int(called.length_ns.sum()))
        return made("share of device work", QUOTIENT, total, work, unit="frac") if work.value else None
    return made(f"{_SERIES[what]} of its calls", _SERIES[what], *_each(found))


def _mean(asked: Asked, what: str, found: _Found, everything: _Found) -> Figure | None:
    """Of the mean complete step of a rank: calls count in the step in which they begin."""
    windows = [window for window in asked_of(asked) if window.device_kind != "none"]
    steps = over_windows(
        "steps, over ranks", [(window, window) for window in windows], lambda one: len(one.steps), "steps"
    )
    if not steps.value:
        return None
    mine = _stepped(found)
    if what == "per_step_count":
        count = over_windows("calls in complete steps", mine, lambda called: len(called.row), "calls")
        return made("calls in a step", QUOTIENT, count, steps, unit="calls")
    total = over_windows("its calls in complete steps", mine, lambda called: int(called.length_ns.sum()))
    if what == "per_step":
        return made("in a step", QUOTIENT, total, steps)
    work = over_windows(
        "all device work in complete steps", _stepped(everything), lambda called: int(called.length_ns.sum())
    )
    return made("share of a step's device work", QUOTIENT, total, work, unit="frac") if work.value else None


def _stepped(found: _Found) -> _Found:
    kept = []
    for window, called in found:
        keep = begun_in_steps(window, window.spans.start_ns[called.row])
        kept.append((window, Called(called.row[keep], called.length_ns[keep])))
    return kept


def _each(found: _Found) -> list[Figure]:
    return [
        Figure(f"rank {window.rank} at {start_ns / NS_PER_S:.6f} s", length_ns)
        for window, called in found
        for start_ns, length_ns in zip(
            window.spans.start_ns[called.row].tolist(), called.length_ns.tolist(), strict=True
        )
    ]


GROUP = Group("kernels and operators by name", 12, numbers, heads=("operation",))
