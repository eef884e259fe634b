"""Explains FSDP: the all-gathers and reduce-scatters of each module, hidden, exposed, and asked for ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from meshscope.analysis.explaining.adding import Flags, asked_of, bounds_of, is_all, is_within, over_windows
from meshscope.analysis.explaining.evidence import Pick, delays, events, evidence, place
from meshscope.analysis.explaining.figure import DIFFERENCE, QUOTIENT, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.fsdp import HIDDEN_FRAC, ROOT, Moved, exposed, fsdp, moved
from meshscope.intervals import Intervals
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import percent

_CALLED = {"forward": "forward all-gathers", "backward": "backward all-gathers", "reduce_scatter": "reduce-scatters"}
_SAID = {
    "exposed": ("exposed_ns", "ns", "The time of the WHAT of MODULE beside which nothing is computed"),
    "busy": ("busy_ns", "ns", "The time of the WHAT of MODULE"),
    "hidden": ("hidden_ns", "ns", "The time of the WHAT of MODULE under compute of the same rank"),
    "count": ("count", "calls", "How many WHAT of MODULE there are"),
    "hidden_calls": ("hidden", "calls", f"How many of the WHAT of MODULE have {percent(HIDDEN_FRAC)} of their time or "
                     "more under compute"),
    "ahead": ("ahead", "calls", "How many of the WHAT of MODULE were asked for by a prefetch"),
    "per_step": ("per_step", "calls", "The WHAT of MODULE for each complete step of a rank"),
    "size": ("size_bytes", "bytes", "What one of the WHAT of MODULE moves"),
}  # fmt: skip
_EVERY: dict[str, tuple[str, str, str, str]] = {
    "gathers": ("gathers", "calls", "How many all-gathers FSDP asked for.", "reduce-scatters"),
    "hidden": ("hidden", "calls", f"How many all-gathers have {percent(HIDDEN_FRAC)} of their time or more under "
               "compute.", "reduce-scatters"),
    "hidden_share": ("hidden_frac", "frac", "The share of all-gathers' time that is under compute.", "reduce-scatters"),
    "exposed": ("exposed_ns", "ns", "The time in which FSDP's collectives run and nothing is computed, added up "
                "over ranks and windows.",
                "collectives that are not FSDP's, and a second one at the same time"),
    "exposed_share": ("exposed_frac", "frac", "That time as a share of the windows' length.",
                      "collectives that are not FSDP's"),
    "root_again": ("root_again", "calls", "How many all-gathers of the root module there are in backward passes.",
                   "those of its modules"),
    "root_again_exposed": ("root_again_ns", "ns", "The exposed time of all-gathers of the root in backward passes, "
                           "added up over ranks and windows.", "those of its modules"),
}  # fmt: skip
_EXCLUDES = "collectives of other modules, and waiting is included"
_PLACED = "FSDP2 marks each call on the host with its module (FSDP::all_gather, FSDP::post_backward_reduce)"

_Found = Sequence[tuple[Window, Moved]]
Keeps = Callable[[Moved], bool]


def numbers(run: Run) -> tuple[Number, ...]:
    found = fsdp(run)
    if found is None:
        return ()
    modules = tuple(_number(one.module, one.what, name) for one in found.modules for name in _SAID)
    return (*(_whole(name) for name in _EVERY), *modules)


def _number(module: str, what: str, name: str) -> Number:
    field, unit, said = _SAID[name]
    called = f"fsdp.{module or 'root'}.{what}"
    words = said.replace("WHAT", _CALLED[what]).replace("MODULE", module or "the root")
    return Number(
        name=f"{called}.{name}",
        unit=unit,
        definition=f"{words}, added up over calls, ranks and windows." if unit == "ns" else f"{words}.",
        excludes=_EXCLUDES,
        cases=partial(_cases, module=module, what=what, name=name),
        also=(f"{called}.{field}",) if field not in _SAID else (),
        by=("rank",) if name == "per_step" else ("rank", "step"),
        no_step="it is a mean over steps; count can be told of one",
        is_listed=name == "exposed",
    )


def _whole(name: str) -> Number:
    field, unit, said, excludes = _EVERY[name]
    also = (f"fsdp.{field}",) if field != name else ()
    return Number(f"fsdp.{name}", unit, said, excludes, partial(_whole_cases, name=name), also, ("rank", "step"))


def _found(asked: Asked, keeps: Keeps) -> list[tuple[Window, Moved]]:
    found = [
        (window, _kept(one, is_within(asked, window, one.start_ns)))
        for window in asked_of(asked)
        for one in moved(window)
        if keeps(one)
    ]
    return [(window, one) for window, one in found if len(one.row)]


def _kept(one: Moved, keep: Flags) -> Moved:
    columns = ("size_bytes", "busy_ns", "hidden_ns", "is_ahead", "start_ns", "end_ns", "row")
    return Moved(one.module, one.what, one.rank, **{name: getattr(one, name)[keep] for name in columns})


def _hides(one: Moved) -> int:
    return int((one.hidden_ns >= HIDDEN_FRAC * one.busy_ns).sum())


def _busy(one: Moved) -> int:
    return int(one.busy_ns.sum())


def _under(one: Moved) -> int:
    return int(one.hidden_ns.sum())


def _calls(one: Moved) -> int:
    return len(one.row)


def _ahead(one: Moved) -> int:
    return int(one.is_ahead.sum())


_SUMS: dict[str, tuple[str, Callable[[Moved], int]]] = {
    "busy": ("ns", _busy), "hidden": ("ns", _under), "count": ("calls", _calls), "hidden_calls": ("calls", _hides),
    "ahead": ("calls", _ahead),
}  # fmt: skip


def _sum(name: str, found: _Found) -> Figure:
    unit, told = _SUMS[name]
    return over_windows(name, found, told, unit)


def _figure(asked: Asked, name: str, found: _Found) -> Figure | str:
    if name in _SUMS:
        return _sum(name, found)
    if name == "exposed":
        return made("exposed", DIFFERENCE, _sum("busy", found), _sum("hidden", found))
    if name == "per_step":
        windows = [window for window in asked_of(asked) if moved(window)]
        steps = over_windows("steps, over ranks", [(window, window) for window in windows], _steps, "steps")
        if not steps.value:
            return "no step lies wholly in a window"
        return made("calls in a step", QUOTIENT, _sum("count", found), steps, unit="calls")
    sizes = np.unique(np.concatenate([one.size_bytes for _, one in found])).tolist()
    if len(sizes) != 1 or sizes[0] < 0:
        return "sizes are not known" if min(sizes) < 0 else f"its calls differ in size: {len(sizes)} sizes"
    return Figure("size of a call", sizes[0], "bytes")


def _steps(window: Window) -> int:
    return len(window.steps)


def _cases(asked: Asked, *, module: str, what: str, name: str) -> tuple[Case, ...]:
    every = fsdp(asked.run)
    at = next((at for at, one in enumerate(every.modules) if (one.module, one.what) == (module, what)), -1) \
        if every is not None else -1  # fmt: skip
    found = _found(asked, lambda one: (one.module, one.what) == (module, what))
    figure = _figure(asked, name, found) if found else "no such call begins there"
    of = f"{_CALLED[what]} of {module or 'the root'}"
    return (_case(asked, of, figure, f"fsdp.modules[{at}].{_SAID[name][0]}", found),)


def _case(asked: Asked, of: str, figure: Figure | str, json: str, found: _Found) -> Case:
    of = of if asked.rank is None else f"{of}, rank {asked.rank}"
    if isinstance(figure, str):
        return Case(of, None, why=figure, rank=asked.rank)
    windows = list(dict.fromkeys(window for window, _ in found))
    when = () if asked.step is None else (f"calls that begin in step {asked.step}",)
    return Case(
        of=of,
        figure=figure,
        json=json if is_all(asked) else "",
        rank=asked.rank,
        places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
        evidence=delays([(window, one.row, one.busy_ns - one.hidden_ns) for window, one in found],
                        "calls, by their exposed time"),
        events=events(windows),
        notes=(_PLACED, *when),
    )  # fmt: skip


def _whole_cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    field = _EVERY[name][0]
    if name.startswith("root_again"):
        found = _found(asked, lambda one: (one.module, one.what) == (ROOT, "backward"))
        told = _sum("count", found)
        if name != "root_again":
            told = made("exposed", DIFFERENCE, _sum("busy", found), _sum("hidden", found))
        return (_case(asked, "the root module", told, f"fsdp.{field}", found),)
    if name.startswith("exposed"):
        return (_exposed_case(asked, name),)
    found = _found(asked, lambda one: one.what != "reduce_scatter")
    return (_case(asked, "all-gathers", _gathers(name, found), f"fsdp.{field}", found),)


def _gathers(name: str, found: _Found) -> Figure | str:
    if name != "hidden_share":
        return _sum("hidden_calls" if name == "hidden" else "count", found)
    busy = _sum("busy", found)
    if not busy.value:
        return "all-gathers took no time"
    return made("hidden share", QUOTIENT, _sum("hidden", found), busy, unit="frac")


def _exposed_case(asked: Asked, name: str) -> Case:
    """Joined over collectives that run at the same time, so that each moment counts once."""
    windows = [window for window in asked_of(asked) if moved(window)]
    if not windows:
        return Case("FSDP", None, why="no trace there says of which module an all-gather is", rank=asked.rank)
    alone = [(window, exposed(window) & bounds_of(asked, window)) for window in windows]
    figure = over_windows("exposed", alone, lambda when: when.total_ns)
    if name == "exposed_share":
        lengths = [(window, window if asked.step is None else bounds_of(asked, window)) for window in windows]
        covered = over_windows("the windows' length", lengths, _length_ns)
        figure = made("exposed share", QUOTIENT, figure, covered, unit="frac")
    rows = [np.concatenate([one.row for one in moved(window)]) for window in windows]
    picks = [Pick.within(window, row, when) for (window, when), row in zip(alone, rows, strict=True)]
    return Case(
        of="FSDP's collectives" if asked.rank is None else f"FSDP's collectives, rank {asked.rank}",
        figure=figure,
        json=f"fsdp.{_EVERY[name][0]}" if is_all(asked) else "",
        rank=asked.rank,
        places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
        evidence=evidence(picks, "collective spans"),
        events=events(windows),
        notes=(_PLACED,),
    )


def _length_ns(of: Window | Intervals) -> int:
    return of.end_ns - of.start_ns if isinstance(of, Window) else of.total_ns


GROUP = Group("FSDP by module", 20, numbers, heads=("fsdp.",))
