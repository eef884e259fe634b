"""How the host feeds the device: from launch to start, how much is queued, how short the kernels are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import DATA, LAUNCHING, MEMORY, OPERATORS, OPTIMIZER, PYTHON, SYNC
from meshscope.analysis.idle import WORK, Idle, idle
from meshscope.analysis.parts import per_window
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]

SHORT_NS = 10_000
"""A kernel shorter than this takes about as long to launch as to run."""

SHORT_FRAC = 0.5
"""Kernels are short where this share of them is."""

BOUND_FRAC = 0.1
"""Less of the time than this, waited for the host, binds nobody."""

FEWEST_GAPS = 8
"""Fewer gaps than this are single delays, not the pace of the host."""

_BUSY = (LAUNCHING, OPERATORS, PYTHON, OPTIMIZER)
_BINDS = {
    "host": _BUSY,
    "input": (DATA,),
    "sync": (SYNC,),
    "allocation": (MEMORY,),
}


@dataclass(frozen=True)
class Latencies:
    """A distribution in ns."""

    median_ns: float
    p95_ns: float
    max_ns: int


@dataclass(frozen=True, eq=False)
class Part:
    """One window: of ``works`` pieces of device work, ``linked`` have a launch here; columns are over those.

    ``latency_ns`` is from the launch call's beginning to the start; ``depth`` is how many had been launched and not
    started when the call began; ``kernel_ns`` (k,) is the length of each compute kernel.
    """

    works: int
    linked: int
    calls: int
    contradicting: int
    latency_ns: Ints
    call_ns: Ints
    depth: Ints
    kernel_ns: Ints


@dataclass(frozen=True)
class Launches:
    """One rank over its windows; ``bound`` is what the device waits for on the host, "" for nothing that matters.

    ``launch`` is many gaps, none of them a pause (:data:`PAUSE_NS`), before kernels of which half are short: the host
    launches them no faster. ``host`` is all else that the host does and has not launched meanwhile. ``bound_frac`` is
    the share of ``span_ns`` (the windows' length) that the device was idle for it, ``bound_ns`` that time and
    ``step_bound_ns`` the part of it in the ``steps`` complete steps. ``empty_frac`` is
    the share of launches before which everything launched had started. ``short`` of ``kernels`` compute kernels last
    less than :data:`SHORT_NS`, and ``short_frac`` is their share of the time of all of them, added up.
    """

    rank: int
    works: int
    linked: int
    calls: int
    contradicting: int
    latency: Latencies
    call: Latencies
    depth_median: float
    depth_max: int
    empty_frac: float
    late_starts: int
    kernels: int
    short: int
    short_frac: float
    span_ns: int
    bound: str
    bound_frac: float
    bound_ns: int
    steps: int
    step_bound_ns: int


def linked(spans: SpanTable) -> tuple[Ints, int]:
    """The rows of device work that start after their launch call began, and how many contradict it."""
    works = np.flatnonzero(np.isin(spans.kind, WORK))
    rows = works[spans.link[works] >= 0]
    is_after = spans.start_ns[rows] >= spans.start_ns[spans.link[rows]]
    return rows[is_after], int((~is_after).sum())


@per_window
def measure(window: Window) -> Part | None:
    """None where nothing of the trace is a launch."""
    spans = window.spans
    if window.device_kind != "gpu" or not (spans.kind == Kind.LAUNCH).any():
        return None
    rows, contradicting = linked(spans)
    call = np.unique(spans.link[rows])
    launched_ns, started_ns = np.sort(spans.start_ns[spans.link[rows]]), np.sort(spans.start_ns[rows])
    return Part(
        works=int(np.isin(spans.kind, WORK).sum()),
        linked=len(rows),
        calls=len(call),
        contradicting=contradicting,
        latency_ns=spans.start_ns[rows] - spans.start_ns[spans.link[rows]],
        call_ns=spans.end_ns[call] - spans.start_ns[call],
        depth=_depth(launched_ns, started_ns, spans.start_ns[call]),
        kernel_ns=(spans.end_ns - spans.start_ns)[spans.kind == Kind.COMPUTE],
    )


def _depth(launched_ns: Ints, started_ns: Ints, at_ns: Ints) -> Ints:
    launched = np.searchsorted(launched_ns, at_ns, side="left")
    return launched - np.searchsorted(started_ns, at_ns, side="right")


def launches(run: Run) -> tuple[Launches, ...]:
    """Per rank, sorted by rank; ranks whose trace shows no launch are absent."""
    ranks: dict[int, list[Part]] = {}
    for window in run.windows:
        part = measure(window)
        if part is not None and part.linked:
            ranks.setdefault(window.rank, []).append(part)
    causes = {one.rank: one for one in idle(run)}
    return tuple(_launches(rank, ranks[rank], causes[rank]) for rank in sorted(ranks))


def _launches(rank: int, parts: list[Part], found: Idle) -> Launches:
    depth = np.concatenate([part.depth for part in parts])
    kernel_ns = np.concatenate([part.kernel_ns for part in parts])
    is_short = kernel_ns < SHORT_NS
    bound, bound_ns, step_bound_ns = _bound(found, is_short=are_short(kernel_ns))
    return Launches(
        rank=rank,
        works=sum(part.works for part in parts),
        linked=sum(part.linked for part in parts),
        calls=sum(part.calls for part in parts),
        contradicting=sum(part.contradicting for part in parts),
        latency=_latencies(np.concatenate([part.latency_ns for part in parts])),
        call=_latencies(np.concatenate([part.call_ns for part in parts])),
        depth_median=float(np.median(depth)),
        depth_max=int(depth.max()),
        empty_frac=float((depth <= 0).mean()),
        late_starts=found.late_starts,
        kernels=len(kernel_ns),
        short=int(is_short.sum()),
        short_frac=ratio(int(kernel_ns[is_short].sum()), int(kernel_ns.sum())),
        span_ns=found.span_ns,
        bound=bound,
        bound_frac=ratio(bound_ns, found.span_ns),
        bound_ns=bound_ns,
        steps=found.steps,
        step_bound_ns=step_bound_ns,
    )


def _latencies(values: Ints) -> Latencies:
    return Latencies(float(np.median(values)), float(np.percentile(values, 95)), int(values.max()))


@dataclass(frozen=True)
class Binding:
    """What the device was idle for most, as far as the host is to blame: ``causes`` less ``pauses`` of the same.

    ``launch`` is the pace of the host, which pauses are no part of; ``host`` is then measured against it by its pauses
    alone (``is_of_pauses``).
    """

    name: str
    causes: tuple[str, ...]
    less_pauses: bool = False
    is_of_pauses: bool = False

    def of(self, causes: Mapping[str, int], pauses: Mapping[str, int]) -> int:
        """The time of it, of all causes and of those in pauses."""
        if self.is_of_pauses:
            return _sum(pauses, self.causes)
        return _sum(causes, self.causes) - (_sum(pauses, self.causes) if self.less_pauses else 0)


def binding(found: Idle, *, is_short: bool) -> Binding:
    """The one that has most of the idle time, also where that is little; ``is_short``: most kernels are short."""
    every = [Binding(name, causes) for name, causes in _BINDS.items()]
    paced = Binding("launch", _BUSY, less_pauses=True)
    pace_ns = paced.of(found.causes, found.pause_causes)
    if is_short and found.gaps - found.pauses >= FEWEST_GAPS and pace_ns >= BOUND_FRAC * found.span_ns:
        every = [Binding("host", _BUSY, is_of_pauses=True), *every[1:], paced]
    most = max(every, key=lambda one: one.of(found.causes, found.pause_causes))
    # Pauses alone decide that it is not the pace of the host; what the host costs then is all that it was late for.
    return Binding(most.name, most.causes) if most.is_of_pauses else most


def are_short(kernel_ns: Ints) -> bool:
    """Whether most compute kernels last less than :data:`SHORT_NS`."""
    return ratio(int((kernel_ns < SHORT_NS).sum()), len(kernel_ns)) >= SHORT_FRAC


def _bound(found: Idle, *, is_short: bool) -> tuple[str, int, int]:
    """What the device was idle for most, as far as the host is to blame; how long, and how long of that in steps."""
    most = binding(found, is_short=is_short)
    ns = most.of(found.causes, found.pause_causes)
    in_steps_ns = most.of(found.step_causes, found.step_pause_causes)
    is_bound = ratio(ns, found.span_ns) >= BOUND_FRAC
    return most.name if is_bound else "", ns, in_steps_ns


def _sum(times_ns: Mapping[str, int], causes: Iterable[str]) -> int:
    return sum(times_ns.get(cause, 0) for cause in causes)
