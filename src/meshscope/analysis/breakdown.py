"""Where the time of each rank goes: compute, collective (hidden or exposed), copy, idle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from meshscope.analysis.in_steps import steps_of
from meshscope.analysis.parts import per_pair, per_window
from meshscope.analysis.waiting import WindowWaits, meets, waiting
from meshscope.intervals import Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, Window

_SUMMED = (
    "span_ns", "compute_ns", "collective_ns", "copy_ns", "hidden_ns", "exposed_ns", "busy_ns", "idle_ns",
)  # fmt: skip


@dataclass(frozen=True)
class Breakdown:
    """Nanoseconds. ``hidden + exposed = collective`` and ``busy + idle = span``, always.

    ``wait_ns`` is the part spent waiting for peers: where the trace records it, or where every collective was matched
    with its counterparts on the other ranks; None else. On torch CPU ranks whose collectives were not, it is the time
    in waits that were recorded as operators, which may be part of the waiting only.
    """

    span_ns: int = 0
    compute_ns: int = 0
    collective_ns: int = 0
    copy_ns: int = 0
    hidden_ns: int = 0
    exposed_ns: int = 0
    busy_ns: int = 0
    idle_ns: int = 0
    wait_ns: int | None = None


@dataclass(frozen=True)
class RankBreakdown:
    """One rank over all its windows; ``per_step`` is over ``steps`` complete steps, divided by their number.

    ``newest`` is per step over the last window only. ``events_*`` are sums over the windows' counts.
    """

    rank: int
    device: int
    rank_from: str
    device_kind: str
    total: Breakdown
    per_step: Breakdown | None
    newest: Breakdown | None
    steps: tuple[int, ...]
    newest_steps: tuple[int, ...]
    events_read: int
    events_device: int
    dropped: dict[str, int]
    repaired: dict[str, int]


@dataclass(frozen=True)
class Part:
    """One window, or several of one rank added up; ``stepped`` is over the ``steps`` complete steps, not divided."""

    total: Breakdown
    stepped: Breakdown
    steps: tuple[int, ...]
    read: int
    device: int
    dropped: Counter[str]
    repaired: Counter[str]


@per_window
def measure(window: Window) -> Part:
    """The window's share of the answer, each class of time as a union over its device events."""
    busy = _Busy.of(window)
    inside = steps_of(window)
    counts = window.counts
    return Part(
        total=busy.breakdown(window.end_ns - window.start_ns if busy.any else 0),
        stepped=busy.within(inside).breakdown(inside.total_ns if busy.any else 0),
        steps=window.steps if busy.any else (),
        read=counts.read,
        device=counts.device,
        dropped=Counter(counts.dropped),
        repaired=Counter(counts.repaired),
    )


def combine(parts: Iterable[Part]) -> Part:
    """Several windows, of one rank or of all: the time between them is nobody's idle time."""
    parts = list(parts)
    return Part(
        total=_sum([part.total for part in parts]),
        stepped=_sum([part.stepped for part in parts]),
        steps=tuple(chain.from_iterable(part.steps for part in parts)),
        read=sum(part.read for part in parts),
        device=sum(part.device for part in parts),
        dropped=_counted(part.dropped for part in parts),
        repaired=_counted(part.repaired for part in parts),
    )


def _counted(counts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total += one
    return total


@dataclass(frozen=True)
class _Busy:
    """The unions of one window. ``wait`` is None where the trace cannot tell waiting apart."""

    compute: Intervals
    collective: Intervals
    copy: Intervals
    wait: Intervals | None

    @classmethod
    def of(cls, window: Window) -> _Busy:
        spans = window.spans
        knows_wait = all(what != "wait_ns" for what, _ in window.cannot_say)
        wait = spans.busy(Kind.WAIT) if knows_wait else None
        return cls(spans.busy(Kind.COMPUTE), spans.busy(Kind.COLLECTIVE), spans.busy(Kind.COPY), wait)

    @property
    def any(self) -> bool:
        return bool(len(self.compute) or len(self.collective) or len(self.copy))

    def within(self, bounds: Intervals) -> _Busy:
        wait = None if self.wait is None else self.wait & bounds
        return _Busy(self.compute & bounds, self.collective & bounds, self.copy & bounds, wait)

    def breakdown(self, span_ns: int) -> Breakdown:
        hidden_ns = (self.collective & self.compute).total_ns
        busy_ns = (self.compute | self.collective | self.copy).total_ns
        return Breakdown(
            span_ns=span_ns,
            compute_ns=self.compute.total_ns,
            collective_ns=self.collective.total_ns,
            copy_ns=self.copy.total_ns,
            hidden_ns=hidden_ns,
            exposed_ns=self.collective.total_ns - hidden_ns,
            busy_ns=busy_ns,
            idle_ns=span_ns - busy_ns,
            wait_ns=None if self.wait is None else self.wait.total_ns,
        )


def _sum(parts: Sequence[Breakdown]) -> Breakdown:
    waits = [part.wait_ns for part in parts]
    return Breakdown(
        **{name: sum(getattr(part, name) for part in parts) for name in _SUMMED},
        wait_ns=None if None in waits else sum(wait for wait in waits if wait is not None),
    )


def per_step(part: Part) -> Breakdown | None:
    """The mean over complete steps, in whole nanoseconds; None without any."""
    return _divided(part.stepped, len(part.steps)) if part.steps else None


def mean(parts: Sequence[Breakdown]) -> Breakdown:
    """Of several ranks as one, in whole nanoseconds."""
    return _divided(_sum(parts), len(parts))


def _divided(total: Breakdown, count: int) -> Breakdown:
    """The five parts that make up a span are rounded, and all else is added up from them: so it still adds up."""
    hidden_ns = round(total.hidden_ns / count)
    exposed_ns = round(total.exposed_ns / count)
    idle_ns = round(total.idle_ns / count)
    compute_ns = round((total.compute_ns - total.hidden_ns) / count) + hidden_ns
    busy_ns = round((total.busy_ns - total.compute_ns - total.exposed_ns) / count) + compute_ns + exposed_ns
    return Breakdown(
        span_ns=busy_ns + idle_ns,
        compute_ns=compute_ns,
        collective_ns=hidden_ns + exposed_ns,
        copy_ns=round(total.copy_ns / count),
        hidden_ns=hidden_ns,
        exposed_ns=exposed_ns,
        busy_ns=busy_ns,
        idle_ns=idle_ns,
        wait_ns=None if total.wait_ns is None else round(total.wait_ns / count),
    )


def breakdown(run: Run) -> tuple[RankBreakdown, ...]:
    """Per rank, sorted by rank; empty while no window has been read.

    A rank whose windows hold no device work has ``device_kind`` none and zeros that mean nothing: the windows'
    ``cannot_say`` tells why, and whoever shows them shows that instead.
    """
    ranks: dict[int, list[Window]] = {}
    for window in run.windows:
        ranks.setdefault(window.rank, []).append(window)
    known = parts(run)
    return tuple(_rank({window: known[window] for window in ranks[rank]}) for rank in sorted(ranks))


def parts(run: Run) -> dict[Window, Part]:
    """Every window's share of the answer, with the waiting that matching tells."""
    waits = waiting(run).windows
    return {window: _whole(window, waits.get(window)) for window in run.windows}


@per_pair
def _whole(window: Window, waits: WindowWaits | None) -> Part:
    return _waited(measure(window), window, waits)


def of_step(run: Run, window: Window, step: int) -> Part:
    """The window's share of one of its complete ``steps`` alone."""
    at = window.steps.index(step)
    narrowed = replace(window, steps=(step,), step_ns=window.step_ns[at : at + 1])
    return _waited(measure(narrowed), narrowed, waiting(run).windows.get(window))


def _rank(parts: dict[Window, Part]) -> RankBreakdown:
    windows = list(parts)
    whole, last = combine(parts.values()), max(windows, key=lambda window: window.start_ns)
    kinds = [window.device_kind for window in windows if window.device_kind != "none"]
    return RankBreakdown(
        rank=last.rank,
        device=last.device,
        rank_from=last.rank_from,
        device_kind=kinds[-1] if kinds else "none",
        total=whole.total,
        per_step=per_step(whole),
        newest=per_step(parts[last]),
        steps=whole.steps,
        newest_steps=measure(last).steps,
        events_read=whole.read,
        events_device=whole.device,
        dropped=dict(whole.dropped),
        repaired=dict(whole.repaired),
    )


def _waited(part: Part, window: Window, waits: WindowWaits | None) -> Part:
    """With the waiting that matching tells, where it tells all of it; what XLA records itself stays."""
    if waits is None or meets(window):
        return part
    spans = window.spans
    rows = np.flatnonzero(spans.kind == Kind.COLLECTIVE)
    is_matched = np.isin(rows, waits.row)
    waited = waits.waiting(np.ones(len(waits.row), dtype=bool))
    inside = steps_of(window)
    other = union(spans.start_ns[rows[~is_matched]], spans.end_ns[rows[~is_matched]])
    total, stepped = part.total, part.stepped
    if is_matched.all():
        total = replace(total, wait_ns=waited.total_ns)
    if not (other & inside).total_ns:
        stepped = replace(stepped, wait_ns=(waited & inside).total_ns)
    return replace(part, total=total, stepped=stepped)
