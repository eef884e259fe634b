"""Explains the table of collectives by kind: means per profiled step and rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from meshscope.analysis.explaining.adding import bounds_of
from meshscope.analysis.explaining.evidence import Pick, events, evidence, labels, place, stepped, whole
from meshscope.analysis.explaining.figure import (
    DIFFERENCE,
    QUOTIENT,
    ROUNDED_QUOTIENT,
    Figure,
    counted_of,
    made,
    total,
)
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.overlap import Kept, Part, of_step, overlap, parts
from meshscope.run import Run
from meshscope.spans import Kind, Window

_SAID = {
    "busy": ("ns", "The time in which COLLECTIVE ran, a mean over profiled steps and ranks"),
    "hidden": ("frac", "The share of the time of COLLECTIVE in which compute of the same rank ran too"),
    "exposed": ("ns", "The time of COLLECTIVE beside no compute of its rank, a mean over profiled steps and ranks"),
    "wait": ("ns", "The time in which COLLECTIVE only waited for peers, a mean over profiled steps and ranks"),
    "size": ("bytes", "What COLLECTIVE moved, a mean over profiled steps and ranks"),
    "count": ("calls", "How many COLLECTIVE spans began in the profiled steps, over all ranks"),
}  # fmt: skip
_EXCLUDES = "collectives of other kinds, and steps that were not being profiled"

_Found = Sequence[tuple[Window, Kept]]


def numbers(run: Run) -> tuple[Number, ...]:
    return tuple(
        Number(
            name=f"by_kind.{kind.name}.{what}",
            unit=unit,
            definition=f"{said.replace('COLLECTIVE', kind.name.replace('_', '-'))}.",
            excludes=_EXCLUDES,
            cases=partial(_cases, name=kind.name, what=what),
            by=("rank", "step"),
        )
        for kind in overlap(run)
        for what, (unit, said) in _SAID.items()
    )


def _cases(asked: Asked, *, name: str, what: str) -> tuple[Case, ...]:
    known = {window: part for window, part in _parts(asked).items() if asked.has(window.rank)}
    has_steps = asked.step is not None or any(part.steps for part in parts(asked.run).values())
    counting = {window: part for window, part in known.items() if part.steps or not has_steps}
    found = [(window, kept) for window, part in counting.items() if (kept := _kept(part, name, has_steps)) is not None]
    of = f"{name}, per step and rank" if has_steps else f"{name}, per window: no step lies wholly in one"
    of = of if asked.rank is None else f"{of}, rank {asked.rank}"
    if not found:
        return (Case(of, None, why="no such collective ran there", rank=asked.rank),)
    divisor = counted_of(
        sum(part.steps for part in counting.values()) if has_steps else len(counting),
        "steps × ranks" if has_steps else "windows",
    )
    figure = _FIGURES[what](found, divisor)
    windows = [window for window, _ in found]
    picks = [_pick(asked, window, name, has_steps=has_steps) for window in windows]
    why = "" if figure is not None else "sizes are not known" if what == "size" else "waiting cannot be told apart"
    if what == "hidden" and figure is None:
        why = "it took no time"
    return (
        Case(
            of=of,
            figure=figure,
            why=why,
            rank=asked.rank,
            places=tuple(place(window, _steps(asked, has_steps=has_steps)) for window in windows),
            evidence=evidence(picks, "collective spans"),
            events=events(windows),
            notes=() if asked.step is None else (f"of step {asked.step} alone, not the mean",),
        ),
    )


def _parts(asked: Asked) -> dict[Window, Part]:
    """What each window has of each collective; of the step that was asked about alone."""
    if asked.step is None:
        return parts(asked.run)
    holding = [window for window in asked.run.windows if asked.step in window.steps]
    return {window: of_step(asked.run, window, asked.step) for window in holding if window.device_kind != "none"}


def _steps(asked: Asked, *, has_steps: bool) -> tuple[int, ...] | None:
    return (asked.step,) if asked.step is not None else None if has_steps else ()


def _kept(part: Part, name: str, has_steps: bool) -> Kept | None:  # noqa: FBT001  # says which of two tables
    return (part.stepped if has_steps else part.whole).get(name)


def _pick(asked: Asked, window: Window, name: str, *, has_steps: bool) -> Pick:
    spans = window.spans
    number = spans.collectives.index(name)
    rows = np.flatnonzero((spans.collective == number) & (spans.kind == Kind.COLLECTIVE))
    if asked.step is not None:
        return Pick.within(window, rows, bounds_of(asked, window))
    return Pick.within(window, rows, stepped(window) if has_steps else whole(window))


def _summed(what: str, found: _Found, unit: str = "ns") -> Figure | None:
    """Over all windows; None where one does not tell."""
    leaves = []
    for (_, kept), called in zip(found, labels([window for window, _ in found]), strict=True):
        value = getattr(kept, what)
        if value is None and what == "size_bytes" and not kept.count:
            continue
        if value is None:
            return None
        leaves.append(Figure(called, value, unit))
    return total(what.removesuffix("_ns").removesuffix("_bytes"), leaves, unit) if leaves else None


def _mean(what: str, found: _Found, divisor: Figure) -> Figure | None:
    of = _summed(f"{what}_ns", found)
    return None if of is None else made(f"{what} per step and rank", QUOTIENT, of, divisor)


def _busy(found: _Found, divisor: Figure) -> Figure | None:
    return _mean("busy", found, divisor)


def _hidden(found: _Found, divisor: Figure) -> Figure | None:
    hidden, busy = _mean("hidden", found, divisor), _mean("busy", found, divisor)
    if hidden is None or busy is None or not busy.value:
        return None
    return made("hidden", QUOTIENT, hidden, busy, unit="frac")


def _exposed(found: _Found, divisor: Figure) -> Figure | None:
    busy, hidden = _mean("busy", found, divisor), _mean("hidden", found, divisor)
    return None if busy is None or hidden is None else made("exposed per step and rank", DIFFERENCE, busy, hidden)


def _wait(found: _Found, divisor: Figure) -> Figure | None:
    return _mean("wait", found, divisor)


def _size(found: _Found, divisor: Figure) -> Figure | None:
    of = _summed("size_bytes", found, "bytes")
    return None if of is None else made("size per step and rank", ROUNDED_QUOTIENT, of, divisor, unit="bytes")


def _count(found: _Found, divisor: Figure) -> Figure | None:
    del divisor
    return _summed("count", found, "calls")


_FIGURES: dict[str, Callable[[_Found, Figure], Figure | None]] = {
    "busy": _busy, "hidden": _hidden, "exposed": _exposed, "wait": _wait, "size": _size, "count": _count,
}  # fmt: skip

GROUP = Group("collectives by kind", 6, numbers)
