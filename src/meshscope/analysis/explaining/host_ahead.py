"""Explains how far a host is ahead of its device, which is why steps are told apart by what the host launched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meshscope.analysis.device_steps import MARKS, device_steps
from meshscope.analysis.explaining.evidence import events, place
from meshscope.analysis.explaining.figure import DIFFERENCE, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.run import Run
from meshscope.spans import Window

_HOW = {
    "launches": "a device's step is told by launches: it begins with the first work that the host launched in it, on "
    "the stream that computes most, and ends where the next begins",
    "annotations": "a device's step is told by the annotations that the profiler repeats on the device's side",
    MARKS: "no launch tells when the device came to a step, so steps are between the host's marks",
}


def numbers(run: Run) -> tuple[Number, ...]:
    if not any(device_steps(window).by for window in run.windows):
        return ()
    return (
        Number(
            name="device_steps.host_ahead",
            unit="ns",
            definition="How far a rank's host is ahead of its device at most, at the beginning or end of a step.",
            excludes="bounds at which the device is not behind its host",
            cases=_cases,
            also=("host_ahead", "device_steps.host_ahead_ns"),
            no_step="it is the most over all steps",
        ),
    )


def _cases(asked: Asked) -> tuple[Case, ...]:
    ranks: dict[int, list[Window]] = {}
    for window in asked.run.windows:
        if asked.has(window.rank) and device_steps(window).by:
            ranks.setdefault(window.rank, []).append(window)
    if not ranks:
        return (Case("all ranks", None, why="no complete step of a GPU rank was traced"),)
    return tuple(_case(rank, ranks[rank]) for rank in sorted(ranks))


def _case(rank: int, windows: Sequence[Window]) -> Case:
    most = max(windows, key=lambda window: device_steps(window).ahead_ns)
    found = device_steps(most)
    return Case(
        of=f"rank {rank}",
        figure=_figure(most) if found.by != MARKS else None,
        json=f"ranks[rank={rank}].device_steps.host_ahead_ns" if found.by != MARKS else "",
        why=_HOW[MARKS] if found.by == MARKS else "",
        rank=rank,
        places=tuple(place(window) for window in windows),
        events=events(windows),
        notes=(_HOW[found.by],),
    )


def _figure(window: Window) -> Figure:
    found = device_steps(window)
    if not found.ahead_ns:
        return Figure("the device is at each bound when its host is", 0)
    at, side = np.unravel_index(int((found.step_ns - window.step_ns).argmax()), found.step_ns.shape)
    what = f"{('beginning', 'end')[int(side)]} of step {window.steps[int(at)]}"
    device = Figure(f"{what} on the device", int(found.step_ns[at, side]))
    return made("ahead", DIFFERENCE, device, Figure(f"{what} on the host", int(window.step_ns[at, side])))


GROUP = Group("when devices come to their steps", 33, numbers, heads=("device_steps.", "host_ahead"))
