"""Explains what a device waits for on its host: the causes of idle time that the host can be blamed for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from meshscope.analysis.explaining.evidence import events, place
from meshscope.analysis.explaining.figure import DIFFERENCE, QUOTIENT, SUM, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.idle import Idle, idle
from meshscope.analysis.launches import Part, are_short, binding, measure
from meshscope.run import Run
from meshscope.spans import Window

_NO_LAUNCH = "its trace shows no launches, or no work with its launch"
_SAID = {
    "bound": ("bound_ns", "ns", "How long the device was idle for what the host did most meanwhile."),
    "bound_share": ("bound_frac", "frac", "The time that the device was idle for the host, as a share of its windows."),
    "step_bound": ("step_bound_ns", "ns", "The part in complete steps of what the device was idle for the host."),
}


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    return tuple(
        Number(
            name=f"launches.{name}",
            unit=unit,
            definition=said,
            excludes="what the host is not to blame for: queued work, and launches that are not in the trace",
            cases=partial(_cases, name=name, field=field),
            also=(f"launches.{field}",),
            no_step="what binds a device shows over many steps; launches.step_bound is that of all of them",
        )
        for name, (field, unit, said) in _SAID.items()
    )


def _cases(asked: Asked, *, name: str, field: str) -> tuple[Case, ...]:
    causes = {one.rank: one for one in idle(asked.run)}
    ranks: dict[int, list[tuple[Window, Part]]] = {}
    for window in asked.run.windows:
        part = measure(window)
        if asked.has(window.rank) and part is not None and part.linked:
            ranks.setdefault(window.rank, []).append((window, part))
    if not ranks:
        return (Case("all ranks", None, why=_NO_LAUNCH),)
    return tuple(_case(rank, causes[rank], ranks[rank], name, field) for rank in sorted(ranks))


def _case(rank: int, found: Idle, parts: list[tuple[Window, Part]], name: str, field: str) -> Case:
    is_short = are_short(np.concatenate([part.kernel_ns for _, part in parts]))
    windows = [window for window, _ in parts]
    binds = binding(found, is_short=is_short)
    causes, pauses = (
        (found.step_causes, found.step_pause_causes) if name == "step_bound" else (found.causes, found.pause_causes)
    )
    own = pauses if binds.is_of_pauses else causes
    figure = _added(own, binds.causes, "idle while the host was in")
    if binds.less_pauses:
        figure = made("idle at the host's pace", DIFFERENCE, figure, _added(pauses, binds.causes, "pauses in"))
    figure = Figure(f"{binds.name}-bound", figure.value, figure.unit, figure.how, figure.of)
    if name == "bound_share":
        if not found.span_ns:
            return Case(f"rank {rank}", None, why="its windows have no length", rank=rank)
        figure = made(f"{binds.name}-bound share", QUOTIENT, figure, Figure("the windows' length", found.span_ns),
                      unit="frac")  # fmt: skip
    return Case(
        of=f"rank {rank}",
        figure=figure,
        json=f"launches[rank={rank}].{field}",
        rank=rank,
        places=tuple(place(window) for window in windows),
        events=events(windows),
        notes=(f"of what the host can be blamed for, most is {binds.name}: {', '.join(binds.causes)}",),
    )


def _added(times_ns: dict[str, int], causes: Sequence[str], what: str) -> Figure:
    parts = [Figure(f"{what} {cause}", times_ns[cause]) for cause in causes if times_ns.get(cause)]
    return made(f"{what} {', '.join(causes)}", SUM, *parts) if parts else Figure(what, 0)


GROUP = Group("what binds a device", 17, numbers, heads=("launches.",))
