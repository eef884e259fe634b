"""Explains the devices of a rank that drives several: where the time of each goes by itself."""

from __future__ import annotations

from functools import partial

from meshscope.analysis.explaining.evidence import WORK, Pick, events, evidence, place, rows_of, whole
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.explaining.rank_time import said
from meshscope.analysis.explaining.split import Counting, totals
from meshscope.analysis.several_devices import device_parts, several_devices
from meshscope.run import Run
from meshscope.spans import Kind

_KINDS = {"compute": (Kind.COMPUTE,), "copy": (Kind.COPY,)} | dict.fromkeys(
    ("collective", "hidden", "exposed"), (Kind.COLLECTIVE,)
)
_PARTS = ("span", "compute", "collective", "copy", "hidden", "exposed", "busy", "idle")


def numbers(run: Run) -> tuple[Number, ...]:
    if not several_devices(run):
        return ()
    return tuple(
        Number(
            name=f"by_device.{what}",
            unit="ns",
            definition=f"{said(what)}, of each device of a rank by itself.",
            excludes="the rank's other devices; what a rank has is the union of them",
            cases=partial(_cases, what=what),
            also=(f"by_device.{what}_ns",),
            no_step="it is over whole windows: steps are the process's",
        )
        for what in _PARTS
    )


def _cases(asked: Asked, *, what: str) -> tuple[Case, ...]:
    mine = [one for one in several_devices(asked.run) if asked.has(one.rank)]
    cases = []
    for one in mine:
        at = [other for other in mine if other.rank == one.rank].index(one)
        cases.append(_case(asked, one.rank, one.device, at, what))
    return tuple(cases)


def _case(asked: Asked, rank: int, device: int, at: int, what: str) -> Case:
    found = [
        Counting(window, part.total, whole(window), (), is_whole=True)
        for window in asked.run.windows
        if window.rank == rank
        for number, part in device_parts(window)
        if number == device
    ]
    windows = [one.window for one in found]
    kinds = _KINDS.get(what, WORK)
    rows = [rows_of(window.spans, *kinds) for window in windows]
    picks = [
        Pick.within(window, row[window.spans.device[row] == device], whole(window))
        for window, row in zip(windows, rows, strict=True)
    ]
    return Case(
        of=f"device {device} of rank {rank}",
        figure=totals(found, "of the device")[what],
        json=f"ranks[rank={rank}].devices[{at}].breakdown.{what}_ns",
        rank=rank,
        places=tuple(place(window, ()) for window in windows),
        evidence=evidence(picks, "spans of it") if any(len(pick.row) for pick in picks) else None,
        events=events(windows),
        notes=("the spans are all of their kind, hidden and exposed",) if what in ("hidden", "exposed") else (),
    )


GROUP = Group("several devices of one rank", 27, numbers, heads=("by_device.",))
