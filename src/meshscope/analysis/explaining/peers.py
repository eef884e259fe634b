"""Explains what ranks waited for each other, over the collectives that were matched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from meshscope.analysis.explaining.adding import Flags
from meshscope.analysis.explaining.evidence import Pick, events, evidence, labels, place
from meshscope.analysis.explaining.figure import DIFFERENCE, QUOTIENT, Figure, counted_of, made, total
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.lateness import NO_STEP, collective_lateness, missing_ns
from meshscope.analysis.rank_waits import counts
from meshscope.analysis.waiting import Waiting, WindowWaits, charges, held_ns, waiting
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import counted

_EXCLUDES = "collectives without a counterpart on every rank of their group"
_SAID = {
    "calls": ("calls", "calls", "How many collectives of a rank have a counterpart on every rank of their group."),
    "busy": ("busy_ns", "ns", "The time of a rank's matched collectives, added up over calls (at once counts twice)."),
    "wait": ("wait_ns", "ns",
             "What a rank's collectives waited until the last rank came, added up over calls (at once counts twice)."),
    "transfer": ("transfer_ns", "ns", "What is left of a rank's matched collectives once the last rank has come."),
    "last": ("last", "calls", "How many of the matched collectives a rank came to last."),
    "charged": ("charged_ns", "ns", "What all ranks waited in collectives that this rank came to last, added up."),
    "late": ("late_ns", "ns",
             "For how long a rank had not come to a collective to which the median rank had, step by step added up."),
}  # fmt: skip
_PER_STEP = {
    "wait": "What a rank's matched collectives waited until the last rank came, added up over calls, in a step.",
    "transfer": "What is left of a rank's matched collectives once the last rank has come, in a step in the mean.",
    "held": "How long another rank waits for one that came last, in a step in the mean (at once counts once).",
}

_Waits = list[tuple[Window, WindowWaits]]


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    sums = tuple(
        Number(f"waiting.{name}", unit, said, _EXCLUDES, partial(_cases, name=name),
               (f"waiting.ranks.{field}", *((f"waiting.{field}",) if field != name else ())), ("rank", "step"))
        for name, (field, unit, said) in _SAID.items()
    )  # fmt: skip
    means = tuple(
        Number(f"waiting.per_step.{name}", "ns", said, _EXCLUDES, partial(_mean_cases, name=name),
               no_step=f"it is a mean over steps; waiting.{'charged' if name == 'held' else name} can")
        for name, said in _PER_STEP.items()
    )  # fmt: skip
    return sums + means


def _everyone(asked: Asked, found: Waiting) -> _Waits:
    """The waits of every window; those of collectives of the step that was asked about."""
    if asked.step is None:
        return list(found.windows.items())
    return [(window, _kept(waits, waits.step == asked.step)) for window, waits in found.windows.items()]


def _kept(waits: WindowWaits, keep: Flags) -> WindowWaits:
    names = [name for name in WindowWaits.__dataclass_fields__ if name != "clock"]
    return replace(waits, **{name: getattr(waits, name)[keep] for name in names})


def _cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    found = waiting(asked.run)
    if not found.ranks:
        return (Case("all ranks", None, why=_why(found)),)
    everyone = _everyone(asked, found)
    notes = _notes(found)
    if asked.step is not None:
        notes = (f"of collectives that all their ranks have in step {asked.step}", *notes)
    return tuple(_case(rank.rank, everyone, name, notes, asked) for rank in found.ranks if asked.has(rank.rank))


def _why(found: Waiting) -> str:
    reasons = "; ".join(f"{count} spans: {why}" for why, count in found.unmatched)
    return reasons or "no collective was traced"


def _notes(found: Waiting) -> tuple[str, ...]:
    notes = [f"{found.matched} of {found.spans} collective spans have a counterpart on every rank"]
    if found.residual_ns is not None:
        notes.append(f"ends of one collective agree within {found.residual_ns} ns once clocks are aligned")
    return (*notes, *(f"{count} left out: {why}" for why, count in found.unmatched))


def _case(rank: int, everyone: _Waits, name: str, notes: tuple[str, ...], asked: Asked) -> Case:
    mine = [(window, waits) for window, waits in everyone if window.rank == rank]
    behind = everyone if name in ("charged", "held") else mine
    windows = [window for window, _ in behind]
    is_told = asked.step is None and name not in ("late", "held")
    return Case(
        of=f"rank {rank}",
        figure=_FIGURES[name](rank, mine, everyone),
        json=f"waiting.ranks[rank={rank}].{_SAID[name][0]}" if is_told else "",
        rank=rank,
        places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
        evidence=evidence([_pick(rank, window, waits, name) for window, waits in behind], "matched collective spans"),
        events=events(windows),
        notes=notes,
    )


def _pick(rank: int, window: Window, waits: WindowWaits, name: str) -> Pick:
    """By what each span has of the number itself, since these are added up over calls."""
    length_ns = waits.end_ns - waits.start_ns
    whole = dict.fromkeys(("calls", "busy", "last"), length_ns)
    share_ns = (whole | {"transfer": length_ns - waits.wait_ns, "late": waits.late_ns}).get(name, waits.wait_ns)
    keep = share_ns > 0
    if name in ("last", "charged", "held"):
        keep &= waits.last_rank == rank
    row = waits.row[keep]
    where = union(window.spans.start_ns[row], window.spans.end_ns[row])
    return Pick(window, row, where, share_ns[keep])


def _by_window(what: str, told: Callable[[WindowWaits], int], of: _Waits, unit: str = "ns") -> Figure:
    names = labels([window for window, _ in of])
    leaves = [Figure(called, told(waits), unit) for (_, waits), called in zip(of, names, strict=True)]
    return total(what, leaves, unit) if leaves else Figure(what, 0, unit)


def _calls(rank: int, mine: _Waits, everyone: _Waits) -> Figure:
    del rank, everyone
    return _by_window("matched calls", lambda waits: len(waits.row), mine, "calls")


def _busy(rank: int, mine: _Waits, everyone: _Waits) -> Figure:
    del rank, everyone
    return _by_window("busy", lambda waits: int((waits.end_ns - waits.start_ns).sum()), mine)


def _wait(rank: int, mine: _Waits, everyone: _Waits) -> Figure:
    del rank, everyone
    return _by_window("waiting", lambda waits: int(waits.wait_ns.sum()), mine)


def _transfer(rank: int, mine: _Waits, everyone: _Waits) -> Figure:
    return made("transfer", DIFFERENCE, _busy(rank, mine, everyone), _wait(rank, mine, everyone))


def _last(rank: int, mine: _Waits, everyone: _Waits) -> Figure:
    del everyone
    return _by_window("came last", lambda waits: int(np.count_nonzero(waits.last_rank == rank)), mine, "calls")


def _charged(rank: int, mine: _Waits, everyone: _Waits) -> Figure:
    del mine
    return _by_window("waited for it", lambda waits: charges(waits).get(rank, 0), everyone)


def _held(rank: int, mine: _Waits, everyone: _Waits) -> Figure:
    del mine
    return _by_window("waited for it", lambda waits: held_ns(waits).get(rank, 0), everyone)


def _late(rank: int, mine: _Waits, everyone: _Waits) -> Figure:
    del rank, everyone
    return _by_window("later than the median rank", lambda waits: int(missing_ns(waits)[1].sum()), mine)


_FIGURES: dict[str, Callable[[int, _Waits, _Waits], Figure]] = {
    "calls": _calls, "busy": _busy, "wait": _wait, "transfer": _transfer, "last": _last, "charged": _charged,
    "held": _held, "late": _late,
}  # fmt: skip


# Means of a step, as the panel of waiting has them


def _mean_cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    found = waiting(asked.run)
    late = collective_lateness(asked.run, found)
    if len(found.ranks) < 2 or not late.is_known:
        return (Case("all ranks", None, why=_why(found) if not found.ranks else "only one rank can be seen"),)
    of = counted_of(max(len(set(late.steps) - {NO_STEP}), 1), "steps")
    everyone = [(window, _kept(waits, counts(waits, late))) for window, waits in found.windows.items()]
    outside = sum(len(waits.row) for waits in found.windows.values()) - sum(len(waits.row) for _, waits in everyone)
    notes = _notes(found) + ((f"{counted(outside, 'call')} in no complete step left out",) if outside else ())
    cases = []
    for rank in found.ranks:
        if not asked.has(rank.rank):
            continue
        case = _case(rank.rank, everyone, name, notes, asked)
        assert case.figure is not None
        figure = case.figure
        if name == "held":
            others = counted_of(len(found.ranks) - 1, "other ranks")
            figure = made("of each other rank", QUOTIENT, figure, others)
        cases.append(replace(case, figure=made(f"{name} in a step", QUOTIENT, figure, of), json=""))
    return tuple(cases)


GROUP = Group("waiting for other ranks", 7, numbers)
