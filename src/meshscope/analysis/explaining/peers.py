"""Explains what ranks waited for each other, over the collectives that were matched."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from meshscope.analysis.explaining.evidence import Pick, events, evidence, labels, place
from meshscope.analysis.explaining.figure import DIFFERENCE, Figure, made, total
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.waiting import WindowWaits, charges, waiting
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Window

_EXCLUDES = "collectives without a counterpart on every rank of their group"
_SAID = {
    "busy": ("busy_ns", "ns", "The time of a rank's matched collectives, added up over calls (at once counts twice)."),
    "wait": ("wait_ns", "ns", "What a rank's matched collectives waited for the last rank to come, added up."),
    "transfer": ("transfer_ns", "ns", "What is left of a rank's matched collectives once the last rank has come."),
    "last": ("last", "calls", "How many of the matched collectives a rank came to last."),
    "charged": ("charged_ns", "ns", "What all ranks waited in collectives that this rank came to last, added up."),
}  # fmt: skip

_Waits = list[tuple[Window, WindowWaits]]


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    return tuple(
        Number(f"waiting.{name}", unit, said, _EXCLUDES, partial(_cases, name=name),
               (f"waiting.{field}", f"waiting.ranks.{field}"))
        for name, (field, unit, said) in _SAID.items()
    )  # fmt: skip


def _cases(asked: Asked, *, name: str) -> tuple[Case, ...]:
    found = waiting(asked.run)
    if not found.ranks:
        reasons = "; ".join(f"{count} spans: {why}" for why, count in found.unmatched)
        return (Case("all ranks", None, why=reasons or "no collective was traced"),)
    everyone = list(found.windows.items())
    notes = [f"{found.matched} of {found.spans} collective spans have a counterpart on every rank"]
    if found.residual_ns is not None:
        notes.append(f"ends of one collective agree within {found.residual_ns} ns once clocks are aligned")
    notes += [f"{count} left out: {why}" for why, count in found.unmatched]
    return tuple(_case(rank.rank, everyone, name, tuple(notes)) for rank in found.ranks if asked.has(rank.rank))


def _case(rank: int, everyone: _Waits, name: str, notes: tuple[str, ...]) -> Case:
    mine = [(window, waits) for window, waits in everyone if window.rank == rank]
    behind = everyone if name == "charged" else mine
    windows = [window for window, _ in behind]
    return Case(
        of=f"rank {rank}",
        figure=_FIGURES[name](rank, mine, everyone),
        json=f"waiting.ranks[rank={rank}].{_SAID[name][0]}",
        rank=rank,
        places=tuple(place(window) for window in windows),
        evidence=evidence([_pick(rank, window, waits, name) for window, waits in behind], "matched collective spans"),
        events=events(windows),
        notes=notes,
    )


def _pick(rank: int, window: Window, waits: WindowWaits, name: str) -> Pick:
    """By what each span has of the number itself, since these are added up over calls."""
    length_ns = waits.end_ns - waits.start_ns
    share_ns = {"busy": length_ns, "transfer": length_ns - waits.wait_ns, "last": length_ns}.get(name, waits.wait_ns)
    keep = share_ns > 0
    if name in ("last", "charged"):
        keep &= waits.last_rank == rank
    row = waits.row[keep]
    where = union(window.spans.start_ns[row], window.spans.end_ns[row])
    return Pick(window, row, where, share_ns[keep])


def _by_window(what: str, told: Callable[[WindowWaits], int], of: _Waits, unit: str = "ns") -> Figure:
    names = labels([window for window, _ in of])
    leaves = [Figure(called, told(waits), unit) for (_, waits), called in zip(of, names, strict=True)]
    return total(what, leaves, unit)


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


_FIGURES: dict[str, Callable[[int, _Waits, _Waits], Figure]] = {
    "busy": _busy, "wait": _wait, "transfer": _transfer, "last": _last, "charged": _charged,
}  # fmt: skip

GROUP = Group("waiting for other ranks", 7, numbers)
