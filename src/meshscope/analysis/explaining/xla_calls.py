"""Explains how XLA ran its collectives: how many of each kind beside other work, combined, and in command buffers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from meshscope.analysis.explaining.evidence import Pick, events, evidence, labels, place
from meshscope.analysis.explaining.figure import Figure, total
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.xla_checks import XlaCollective, xla
from meshscope.analysis.xla_modes import ASYNC, SYNC, Modes, modes, why_untold
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Window

Flags = npt.NDArray[np.bool_]

_NO_PROGRAM = "no compiled program in the trace tells of all of them"
_WHAT: dict[str, tuple[str, Callable[[Modes], Flags]]] = {
    "asynchronous": ("run beside other work, between a start and a done", lambda told: told.mode == ASYNC),
    "synchronous": ("run in the place of computation", lambda told: told.mode == SYNC),
    "combined": ("carry several arrays, which the compiler put together", lambda told: told.combined == 1),
    "in_commands": ("ran in a command buffer (a CUDA or HIP graph)", lambda told: told.in_commands),
}


def numbers(run: Run) -> tuple[Number, ...]:
    found = xla(run)
    return tuple(
        Number(
            name=f"xla.{one.name or 'unnamed'}.{what}",
            unit="calls",
            definition=f"How many {(one.name or 'unnamed').replace('_', '-')} calls {said}, over all devices.",
            excludes="steps that were not being profiled",
            cases=partial(_cases, name=one.name, what=what),
            by=(),
        )
        for one in (found.collectives if found is not None else ())
        for what, (said, _) in _WHAT.items()
    )


def _cases(asked: Asked, *, name: str, what: str) -> tuple[Case, ...]:
    found = xla(asked.run)
    rows = enumerate(found.collectives if found is not None else ())
    return tuple(_case(asked.run, at, one, what) for at, one in rows if one.name == name)


def _case(run: Run, at: int, found: XlaCollective, what: str) -> Case:
    windows = [window for window in run.windows if len(_rows(window, found.name, what)[0])]
    why = _why(run, found, what)
    leaves = [
        Figure(called, len(_rows(window, found.name, what)[1]), "calls")
        for window, called in zip(windows, labels(windows), strict=True)
    ]
    picks = [_pick(window, found.name, what) for window in windows]
    return Case(
        of=f"{found.count} calls of {found.name or 'an unnamed collective'}",
        figure=None if why else total(what, leaves, "calls"),
        json="" if why else f"xla.collectives[{at}].{what}",
        why=why,
        places=tuple(place(window) for window in windows),
        evidence=None if why else evidence(picks, "collective spans"),
        events=events(windows),
        notes=(f"told by {' and '.join(found.told_by)}",) if found.told_by and not why else (),
    )


def _why(run: Run, found: XlaCollective, what: str) -> str:
    if getattr(found, what) is not None:
        return ""
    if what == "combined":
        return _NO_PROGRAM
    return next((why for window in run.windows if (why := why_untold(window))), "")


def _rows(window: Window, name: str, what: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The collectives of a name, and those of them that are so; none of what is not XLA's."""
    spans, told = window.spans, modes(window)
    if window.framework != "jax" or window.device_kind == "none":
        return told.row[:0], told.row[:0]
    is_named = np.array([other == name for other in (*spans.collectives, "")], dtype=bool)[spans.collective[told.row]]
    return told.row[is_named], told.row[is_named & _WHAT[what][1](told)]


def _pick(window: Window, name: str, what: str) -> Pick:
    spans, (_, row) = window.spans, _rows(window, name, what)
    return Pick.within(window, row, union(spans.start_ns[row], spans.end_ns[row]))


GROUP = Group("how XLA runs collectives", 25, numbers)
