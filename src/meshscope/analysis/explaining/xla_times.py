"""Explains XLA's collectives of each kind: how many there are in a step, how long, how large, and how exposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from meshscope.analysis.explaining.adding import Ints, asked_of, is_all, is_within, over_windows
from meshscope.analysis.explaining.evidence import Pick, events, evidence, place
from meshscope.analysis.explaining.figure import MEDIAN, QUOTIENT, Figure, made
from meshscope.analysis.explaining.number import Asked, Case, Group, Number
from meshscope.analysis.xla_checks import SMALL_BYTES, xla
from meshscope.intervals import Intervals, difference, union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import NS_PER_S, size

_SAID = {
    "count": ("count", "calls", "How many NAME calls there are, over all devices"),
    "per_step": ("per_step", "calls", "The NAME calls of a device for each complete step"),
    "busy": ("busy_ns", "ns", "The time of NAME calls, added up over calls, devices and windows"),
    "exposed": (
        "exposed_ns",
        "ns",
        "The time in which NAME runs on a device and nothing is computed there, added up over devices and windows",
    ),
    "median": ("median_ns", "ns", "The length that half of the NAME calls do not exceed"),
    "sized": ("sized", "calls", "How many NAME calls tell their size"),
    "small": ("small", "calls", f"How many NAME calls move less than {size(SMALL_BYTES)}"),
    "bytes": ("sized_bytes", "bytes", "What NAME calls of known size move together, on all devices"),
}
_EXCLUDES = "collectives of other kinds; waiting is included"


@dataclass(frozen=True, eq=False)
class _Calls:
    """The calls of one window on ``row`` of its spans, and when any of them runs and nothing is computed."""

    row: Ints
    length_ns: Ints
    size_bytes: Ints
    exposed: Intervals


_Found = Sequence[tuple[Window, _Calls]]


def numbers(run: Run) -> tuple[Number, ...]:
    found = xla(run)
    if found is None:
        return ()
    return tuple(_number(one.name, what) for one in found.collectives for what in _SAID)


def _number(name: str, what: str) -> Number:
    field, unit, said = _SAID[what]
    called = f"xla.{name or 'unnamed'}"
    return Number(
        name=f"{called}.{what}",
        unit=unit,
        definition=f"{said.replace('NAME', (name or 'unnamed').replace('_', '-'))}.",
        excludes=_EXCLUDES,
        cases=partial(_cases, name=name, what=what),
        also=(f"{called}.{field}",) if field != what else (),
        by=("rank",) if what == "per_step" else ("rank", "step"),
        no_step="it is a mean over steps; count can be told of one",
    )


def _windows(asked: Asked) -> list[Window]:
    return [one for one in asked_of(asked) if one.framework == "jax" and one.device_kind != "none"]


def _calls(asked: Asked, window: Window, name: str) -> _Calls:
    spans = window.spans
    codes = [at for at, known in enumerate(spans.collectives) if known == name] if name else [-1]
    rows = np.flatnonzero((spans.kind == Kind.COLLECTIVE) & np.isin(spans.collective, codes))
    rows = rows[is_within(asked, window, spans.start_ns[rows])]
    busy = union(spans.start_ns[rows], spans.end_ns[rows])
    exposed = difference(busy, spans.busy(Kind.COMPUTE))
    return _Calls(rows, spans.end_ns[rows] - spans.start_ns[rows], spans.size_bytes[rows], exposed)


_SUMS: dict[str, Callable[[_Calls], int]] = {
    "count": lambda one: len(one.row),
    "busy": lambda one: int(one.length_ns.sum()),
    "exposed": lambda one: one.exposed.total_ns,
    "sized": lambda one: int((one.size_bytes >= 0).sum()),
    "small": lambda one: int(((one.size_bytes >= 0) & (one.size_bytes < SMALL_BYTES)).sum()),
    "bytes": lambda one: int(one.size_bytes[one.size_bytes >= 0].sum()),
}


def _cases(asked: Asked, *, name: str, what: str) -> tuple[Case, ...]:
    told = [(window, _calls(asked, window, name)) for window in _windows(asked)]
    found = [(window, calls) for window, calls in told if len(calls.row)]
    of = (name or "unnamed") + ("" if asked.rank is None else f", rank {asked.rank}")
    if not found:
        return (Case(of, None, why="no call of it begins there", rank=asked.rank),)
    figure = _figure(asked, what, found)
    if figure is None:
        return (Case(of, None, why="no step lies wholly in a window", rank=asked.rank),)
    windows = [window for window, _ in found]
    return (
        Case(
            of=of,
            figure=figure,
            json=f"xla.collectives[name={name}].{_SAID[what][0]}" if is_all(asked) else "",
            rank=asked.rank,
            places=tuple(place(window, None if asked.step is None else (asked.step,)) for window in windows),
            evidence=evidence([_pick(window, calls, what) for window, calls in found], "collective spans"),
            events=events(windows),
            notes=() if asked.step is None else (f"of calls that begin in step {asked.step}",),
        ),
    )


def _pick(window: Window, calls: _Calls, what: str) -> Pick:
    if what == "exposed":
        return Pick.within(window, calls.row, calls.exposed)
    spans = window.spans
    return Pick(window, calls.row, union(spans.start_ns[calls.row], spans.end_ns[calls.row]), calls.length_ns)


def _figure(asked: Asked, what: str, found: _Found) -> Figure | None:
    if what in _SUMS:
        return over_windows(what, found, _SUMS[what], _SAID[what][1])
    if what == "per_step":
        steps = over_windows("steps, over devices", [(one, one) for one in _windows(asked)], _steps, "steps")
        calls = over_windows("calls", found, _SUMS["count"], "calls")
        return made("calls in a step", QUOTIENT, calls, steps, unit="calls") if steps.value else None
    each = [
        Figure(f"rank {window.rank} at {start_ns / NS_PER_S:.6f} s", ns)
        for window, calls in found
        for start_ns, ns in zip(window.spans.start_ns[calls.row].tolist(), calls.length_ns.tolist(), strict=True)
    ]
    return made("median call", MEDIAN, *each)


def _steps(window: Window) -> int:
    return len(window.steps)


GROUP = Group("XLA's collectives", 29, numbers, heads=("xla.",))
