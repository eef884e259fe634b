"""Explains how the host feeds a device: from launch to start, what is queued, and what the device waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from meshscope.analysis.explaining.adding import Flags, Ints, asked_of, is_called_within, is_within, over_windows
from meshscope.analysis.explaining.evidence import delays, events, place
from meshscope.analysis.explaining.figure import (
    LARGEST,
    MEDIAN,
    P95,
    QUOTIENT,
    Figure,
    made,
)
from meshscope.analysis.explaining.number import Asked, Case, Evidence, Group, Number
from meshscope.analysis.launches import SHORT_NS, linked, measure
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import NS_PER_S, duration

_NO_LAUNCH = "its trace shows no launches"
_NO_LINK = "no device work shows its launch"
_UNSHOWN = "device work whose launch the trace does not show"


@dataclass(frozen=True, eq=False)
class Fed:
    """One window, or one step of it, with the rows behind each column of a part of ``launches``.

    ``row`` (n,) are the pieces of work with a launch and ``latency_ns`` theirs; ``call`` (m,) the launch calls, with
    ``call_ns`` and ``depth``; ``kernel`` (k,) all kernels, ``kernel_ns`` long.
    """

    works: int
    contradicting: int
    has_links: bool
    row: Ints
    latency_ns: Ints
    call: Ints
    call_ns: Ints
    depth: Ints
    kernel: Ints
    kernel_ns: Ints

    @property
    def is_short(self) -> Flags:
        short: Flags = self.kernel_ns < SHORT_NS
        return short


_Found = Sequence[tuple[Window, Fed]]


def _fed(asked: Asked, window: Window) -> Fed | None:
    part, spans = measure(window), window.spans
    if part is None:
        return None
    row, _ = linked(spans)
    call, kernel = np.unique(spans.link[row]), np.flatnonzero(spans.kind == Kind.COMPUTE)
    launched, called = (is_called_within(asked, window, spans.start_ns[rows]) for rows in (spans.link[row], call))
    begun = is_within(asked, window, spans.start_ns[kernel])
    return Fed(
        works=part.works,
        contradicting=part.contradicting,
        has_links=bool(part.linked),
        row=row[launched],
        latency_ns=part.latency_ns[launched],
        call=call[called],
        call_ns=part.call_ns[called],
        depth=part.depth[called],
        kernel=kernel[begun],
        kernel_ns=part.kernel_ns[begun],
    )


_SERIES = {"": MEDIAN, ".p95": P95, ".max": LARGEST}
_WORDS = {"": "The median of", ".p95": "What 95 % do not exceed of", ".max": "The most of"}
_MEASURED = {
    "latency": ("latency", "ns", "the time from the beginning of a launch call to the start of its work"),
    "call": ("call", "ns", "the time that a launch call takes the host"),
    "depth": ("depth", "pieces of work", "how much work had been launched and not started when a launch call began"),
}
_FIELDS = {"": "median_ns", ".p95": "p95_ns", ".max": "max_ns"}
_COUNTED: dict[str, tuple[str, str, str, Callable[[Fed], int]]] = {
    "calls": ("calls", "calls", "How many launch calls are linked to device work.", lambda one: len(one.call)),
    "linked": ("linked", "pieces of work", "How many pieces of device work show their launch.",
               lambda one: len(one.row)),
    "kernels": ("kernels", "kernels", "How many compute kernels there are.", lambda one: len(one.kernel)),
    "short": ("short", "kernels", f"How many compute kernels last less than {duration(SHORT_NS)}: they take about as "
              "long to launch.", lambda one: int(one.is_short.sum())),
}  # fmt: skip
_WHOLE: dict[str, tuple[str, str, str, Callable[[Fed], int]]] = {
    "works": ("works", "pieces of work", "How many pieces of device work there are, with or without a launch.",
              lambda one: one.works),
    "contradicting": ("contradicting", "pieces of work", "How many pieces of work start before their launch call "
                      "begins, which cannot be.", lambda one: one.contradicting),
}  # fmt: skip


def numbers(run: Run) -> tuple[Number, ...]:
    del run
    found = [_series(name, suffix) for name in _MEASURED for suffix in _SERIES if name + suffix != "depth.p95"]
    found += [_counts(name, told) for name, told in (*_COUNTED.items(), *_WHOLE.items())]
    found += [_share(name, *told) for name, told in _SHARES.items()]
    return tuple(found)


def _series(name: str, suffix: str) -> Number:
    field, unit, words = _MEASURED[name]
    told = f"launches.{field}.{_FIELDS[suffix]}" if name != "depth" else f"launches.depth_{suffix[1:] or 'median'}"
    return Number(
        name=f"launches.{name}{suffix}",
        unit=unit,
        definition=f"{_WORDS[suffix]} {words}.",
        excludes=_UNSHOWN,
        cases=partial(_cases, figure=partial(_spread, name=name, how=_SERIES[suffix]),
                      json=told.removeprefix("launches."), name=name),
        also=(told,),
        by=("rank", "step"),
    )  # fmt: skip


def _counts(name: str, told: tuple[str, str, str, Callable[[Fed], int]]) -> Number:
    field, unit, said, count = told
    is_whole = name in _WHOLE
    return Number(
        name=f"launches.{name}",
        unit=unit,
        definition=said,
        excludes="other work" if name in ("kernels", "short", "works") else _UNSHOWN,
        cases=partial(_cases, figure=lambda found: over_windows(name, found, count, unit), json=field, name=name),
        by=("rank",) if is_whole else ("rank", "step"),
        no_step="it says how far the whole trace can be trusted",
    )


def _share(name: str, field: str, said: str, excludes: str, figure: Callable[[_Found], Figure | None]) -> Number:
    return Number(f"launches.{name}", "frac", said, excludes, partial(_cases, figure=figure, json=field, name=name),
                  (f"launches.{field}",), by=("rank", "step"))  # fmt: skip


def _cases(asked: Asked, *, figure: Callable[[_Found], Figure | None], json: str, name: str) -> tuple[Case, ...]:
    cases = []
    for rank in sorted({window.rank for window in asked_of(asked)}):
        windows = [window for window in asked_of(asked) if window.rank == rank]
        found = [(window, fed) for window in windows if (fed := _fed(asked, window)) is not None]
        cases.append(_case(asked, rank, found, windows, figure, json, name))
    return tuple(cases) or (Case("all ranks", None, why="nothing was traced"),)


def _case(
    asked: Asked,
    rank: int,
    found: _Found,
    windows: Sequence[Window],
    figure: Callable[[_Found], Figure | None],
    json: str,
    name: str,
) -> Case:
    of = f"rank {rank}"
    linked_ = [(window, fed) for window, fed in found if fed.has_links]
    told = figure(linked_) if linked_ else None
    if told is None:
        why = _NO_LAUNCH if not found else _NO_LINK if not linked_ else "no launch call begins there"
        return Case(of, None, why=why, rank=rank, events=events(windows))
    notes = () if asked.step is None else (f"of launch calls and kernels that begin in step {asked.step}",)
    return Case(
        of=of,
        figure=told,
        json=f"launches[rank={rank}].{json}" if asked.step is None else "",
        rank=rank,
        places=tuple(place(window, None if asked.step is None else (asked.step,)) for window, _ in linked_),
        evidence=_evidence(linked_, name),
        events=events([window for window, _ in linked_]),
        notes=notes,
    )


def _evidence(found: _Found, name: str) -> Evidence | None:
    """The pieces of work that waited longest for their start, the longest calls, or kernels."""
    if name in ("latency", "linked"):
        return delays([(window, fed.row, fed.latency_ns) for window, fed in found], "pieces of work with a launch")
    if name in ("call", "calls", "depth", "empty"):
        return delays([(window, fed.call, fed.call_ns) for window, fed in found], "launch calls")
    if name == "kernels":
        return delays([(window, fed.kernel, fed.kernel_ns) for window, fed in found], "kernels")
    if name in ("short", "short_share"):
        short = [(window, fed.kernel[fed.is_short], fed.kernel_ns[fed.is_short]) for window, fed in found]
        return delays(short, "kernels")
    return None


def _spread(found: _Found, *, name: str, how: str) -> Figure | None:
    unit = _MEASURED[name][1]
    each = []
    for window, fed in found:
        row = fed.row if name == "latency" else fed.call
        column: Ints = {"latency": fed.latency_ns, "call": fed.call_ns, "depth": fed.depth}[name]
        times = zip(window.spans.start_ns[row].tolist(), column.tolist(), strict=True)
        each += [Figure(f"at {start_ns / NS_PER_S:.6f} s", value, unit) for start_ns, value in times]
    return made(f"{how} {name}", how, *each, unit=unit) if each else None


def _empty(found: _Found) -> Figure | None:
    none = over_windows("calls that find nothing queued", found,
                        lambda fed: int((fed.depth <= 0).sum()), "calls")  # fmt: skip
    calls = over_windows("calls", found, lambda fed: len(fed.call), "calls")
    return made("calls that find nothing queued", QUOTIENT, none, calls, unit="frac") if calls.value else None


def _short_share(found: _Found) -> Figure | None:
    every = over_windows("all kernels", found, lambda fed: int(fed.kernel_ns.sum()))
    if not every.value:
        return None
    short = over_windows("short kernels", found, _short_ns)
    return made("short kernels' share", QUOTIENT, short, every, unit="frac")


def _short_ns(fed: Fed) -> int:

    return int(fed.kernel_ns[fed.is_short].sum())


_SHARES = {
    "empty": ("empty_frac", "The share of launch calls before which all that was launched had started.",
              _UNSHOWN, _empty),
    "short_share": ("short_frac", f"The time of kernels shorter than {duration(SHORT_NS)} as a share of that of all "
                    "kernels, added up.", "collectives and copies", _short_share),
}  # fmt: skip


GROUP = Group("launches and the queue", 16, numbers, heads=("launches.",))
