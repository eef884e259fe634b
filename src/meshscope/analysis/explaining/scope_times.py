"""Explains device time by module, by annotation and by named scope: which work was launched in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from meshscope.analysis.explaining.adding import Flags, Ints, asked_of, in_steps, is_all, is_within, over_windows
from meshscope.analysis.explaining.evidence import Pick, events, evidence, place
from meshscope.analysis.explaining.figure import QUOTIENT, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.explaining.operation_times import MOST_TOLD
from meshscope.analysis.in_steps import begun_in_steps
from meshscope.analysis.parts import per_run
from meshscope.analysis.places import places
from meshscope.analysis.scopes import Scopes, scope_of, scopes, weights
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Window

_SAID = {
    "total": ("total_ns", "ns", "The device work that was launched in SCOPE and in no SOURCE within it, added up"),
    "count": ("works", "pieces of work", "How many pieces of device work were launched in SCOPE"),
    "backward": ("backward_ns", "ns", "The part of the time of SCOPE that is of the backward pass"),
    "share": ("frac", "frac", "The time of SCOPE as a share of all device work, both added up over spans and ranks"),
    "per_step": (
        "",
        "ns",
        "The device work launched in SCOPE that begins in a complete step, in the mean step of a rank",
    ),
}
_SUMS = {
    "all": ("of_ns", "The time of all device work that could be in a SOURCE, added up over spans and ranks"),
    "outside": ("outside_ns", "The device work that was launched in no SOURCE, added up over spans and ranks"),
    "unknown": ("unknown_ns", "The device work of which the trace does not show in which SOURCE it was launched"),
}
_EXCLUDES = "work of scopes within it; what ran at the same time counts once for each"
_HOW = {
    "module": "a kernel is in the innermost nn.Module frame around its launch; backward, in that of its forward "
    "operator, by autograd's sequence numbers",
    "annotation": "a kernel is in the innermost record_function around its launch, on the launching thread first",
    "named scope": "an operation is in the scope that its path in the XLA program names",
}

OUTSIDE, UNSHOWN = -1, -2


@dataclass(frozen=True, eq=False)
class Assigned:
    """k pieces of work of one window and source: ``row`` of its spans, time, and ``scope``, a number of ``names``.

    That is :data:`OUTSIDE` for a piece in no scope and :data:`UNSHOWN` where the trace does not show in which.
    ``is_backward`` is None where no backward work is linked to a scope.
    """

    row: Ints
    weight_ns: Ints
    scope: Ints
    names: tuple[str, ...]
    is_backward: Flags | None


def assigned(window: Window) -> dict[str, Assigned]:
    """By source; a source that the window has nothing of is absent."""
    row = places(window).row
    return {
        source: Assigned(
            row=row,
            weight_ns=weights(window, row),
            scope=np.where(told.code >= 0, told.code, np.where(told.is_known, OUTSIDE, UNSHOWN)).astype(np.int64),
            names=told.names,
            is_backward=told.is_backward,
        )
        for source, told in scope_of(window).items()
    }


_Found = Sequence[tuple[Window, Assigned]]


@per_run
def _every(run: Run) -> tuple[Scopes, ...]:
    return scopes(run)


def numbers(run: Run) -> tuple[Number, ...]:
    found = []
    for one in _every(run):
        found += [_sum(one.source, what) for what in _SUMS]
        for at, scope in enumerate(one.scopes):
            found += [_number(one.source, scope.name, what, is_listed=at < MOST_TOLD and what == "total")
                      for what in _SAID]  # fmt: skip
    return tuple(found)


def _number(source: str, scope: str, what: str, *, is_listed: bool) -> Number:
    field, unit, words = _SAID[what]
    called = f"scopes.{source}.{scope}"
    return Number(
        name=called if what == "total" else f"{called}.{what}",
        unit=unit,
        definition=f"{words.replace('SCOPE', scope).replace('SOURCE', source)}.",
        excludes=_EXCLUDES,
        cases=partial(_cases, source=source, scope=scope, what=what),
        also=(f"{called}.{field}",) if field else (),
        by=("rank",) if what == "per_step" else ("rank", "step"),
        no_step=f"it is a mean over steps; {called} can",
        is_listed=is_listed,
    )


def _sum(source: str, what: str) -> Number:
    field, words = _SUMS[what]
    return Number(
        name=f"scopes.{what}.{source}",
        unit="ns",
        definition=f"{words.replace('SOURCE', source)}.",
        excludes="the time between windows",
        cases=partial(_sum_cases, source=source, what=what),
        also=(f"scopes.{field}.{source}",),
        by=("rank", "step"),
    )


def _found(asked: Asked, source: str) -> _Found:
    found = []
    for window in asked_of(asked):
        told = assigned(window).get(source)
        if told is None:
            continue
        keep = is_within(asked, window, window.spans.start_ns[told.row])
        found.append((window, _kept(told, keep)))
    return found


def _kept(told: Assigned, keep: Flags) -> Assigned:
    backward = None if told.is_backward is None else told.is_backward[keep]
    return Assigned(told.row[keep], told.weight_ns[keep], told.scope[keep], told.names, backward)


def _in(scope: str, found: _Found) -> list[tuple[Window, Assigned]]:
    """The windows that have work in a scope, with that work alone."""
    chosen = []
    for window, told in found:
        codes = [at for at, name in enumerate(told.names) if name == scope]
        keep = np.isin(told.scope, codes)
        if keep.any():
            chosen.append((window, _kept(told, keep)))
    return chosen


def _cases(asked: Asked, *, source: str, scope: str, what: str) -> tuple[Case, ...]:
    everything = _found(asked, source)
    mine = _in(scope, everything)
    has_backward = any(told.is_backward is not None for _, told in everything)
    if not mine or (what == "backward" and not has_backward):
        why = "no backward work is linked to its forward operator" if mine else "no work was launched in it there"
        return (Case(scope, None, why=why, rank=asked.rank),)
    figure = _figure(what, mine, everything)
    if figure is None:
        why = "no step lies wholly in a window" if what == "per_step" else "the device work took no time"
        return (Case(scope, None, why=why, rank=asked.rank),)
    at = next(at for one in _every(asked.run) if one.source == source
              for at, row in enumerate(one.scopes) if row.name == scope)  # fmt: skip
    field = _SAID[what][0]
    json = f"scopes[source={source}].scopes[{at}].{field}" if field and is_all(asked) and at < MOST_TOLD else ""
    return (_case(asked, scope, figure, json, mine, source),)


def _figure(what: str, mine: _Found, everything: _Found) -> Figure | None:
    total = over_windows("its work", mine, lambda told: int(told.weight_ns.sum()))
    if what == "count":
        return over_windows("pieces of work", mine, lambda told: len(told.row), "pieces of work")
    if what == "per_step":
        return _mean(mine, everything)
    if what == "backward":
        return over_windows("its backward work", mine, _backward)
    if what == "share":
        work = over_windows("all device work", everything, lambda told: int(told.weight_ns.sum()))
        return made("share of device work", QUOTIENT, total, work, unit="frac") if work.value else None
    return total


def _mean(mine: _Found, everything: _Found) -> Figure | None:
    steps = over_windows("steps, over ranks", [(window, window) for window, _ in everything], _steps, "steps")
    inside = [(window, _kept(told, begun_in_steps(window, window.spans.start_ns[told.row]))) for window, told in mine]
    total = over_windows("its work in complete steps", inside, lambda told: int(told.weight_ns.sum()))
    return made("in a step", QUOTIENT, total, steps) if steps.value else None


def _steps(window: Window) -> int:
    return len(window.steps)


def _backward(told: Assigned) -> int:
    return 0 if told.is_backward is None else int(told.weight_ns[told.is_backward].sum())


def _sum_cases(asked: Asked, *, source: str, what: str) -> tuple[Case, ...]:
    code = {"outside": OUTSIDE, "unknown": UNSHOWN}.get(what)
    found = [
        (window, told if code is None else _kept(told, told.scope == code)) for window, told in _found(asked, source)
    ]
    if not found:
        return (Case(what, None, why=f"no {source} was traced there", rank=asked.rank),)
    figure = over_windows(f"device work, {what}", found, lambda told: int(told.weight_ns.sum()))
    json = f"scopes[source={source}].{_SUMS[what][0]}" if is_all(asked) else ""
    return (_case(asked, what, figure, json, found, source),)


def _case(asked: Asked, of: str, figure: Figure, json: str, found: _Found, source: str) -> Case:
    windows = [window for window, _ in found]
    picks = [
        Pick(window, told.row, union(window.spans.start_ns[told.row], window.spans.end_ns[told.row]), told.weight_ns)
        for window, told in found
    ]
    began = in_steps(windows, [window.spans.start_ns[told.row] for window, told in found])
    when = f"work that begins in step {asked.step}" if asked.step is not None else f"work begins: {began}"
    return Case(
        of=of if asked.rank is None else f"{of}, rank {asked.rank}",
        figure=figure,
        json=json,
        rank=asked.rank,
        places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
        evidence=evidence(picks, "pieces of device work"),
        events=events(windows),
        notes=(_HOW[source], *((when,) if asked.step is not None or began else ())),
    )


GROUP = Group("device time by module and scope", 14, numbers, heads=("scopes.",))
