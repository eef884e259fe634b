"""Each kind of collective: how much of it was hidden under compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from meshscope.analysis.in_steps import steps_of
from meshscope.analysis.parts import per_pair, per_run, per_window
from meshscope.analysis.waiting import WindowWaits, waiting
from meshscope.intervals import EMPTY, Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CollectiveOverlap:
    """One collective name over all ranks, per profiled step and rank (a mean over both).

    ``hidden + exposed = busy``. ``size_bytes`` and ``wait_ns`` are None where the trace does not tell.
    ``count`` is over everything profiled: the calls with time in ``steps`` steps of ``ranks`` ranks, of which times are
    what lies in the steps and sizes whole. Without a complete step the figures are per rank and window, and ``steps``
    is 0.
    """

    name: str
    count: int
    ranks: tuple[int, ...]
    steps: int
    busy_ns: float
    hidden_ns: float
    exposed_ns: float
    wait_ns: float | None
    size_bytes: int | None


@dataclass(frozen=True)
class Kept:
    """One collective in one window: ns, bytes and spans, summed; ``size_bytes`` and ``wait_ns`` None where untold."""

    count: int
    busy_ns: int
    hidden_ns: int
    wait_ns: int | None
    size_bytes: int | None


@dataclass(frozen=True)
class Part:
    """One window. ``stepped`` is over its ``steps`` complete steps, ``whole`` over all of it, both by collective."""

    rank: int
    steps: int
    stepped: dict[str, Kept]
    whole: dict[str, Kept]


@per_window
def measure(window: Window) -> Part:
    """Each collective of a window, within the complete steps and altogether."""
    spans = window.spans
    inside = steps_of(window)
    everywhere = union(spans.start_ns.min(keepdims=True), spans.end_ns.max(keepdims=True)) if len(spans) else EMPTY
    compute = spans.busy(Kind.COMPUTE)
    stepped, whole = {}, {}
    for number, name in enumerate(spans.collectives):
        is_it = spans.collective == number
        mine = _Rows.of(spans, is_it & (spans.kind == Kind.COLLECTIVE))
        if len(mine):
            waits = _Rows.of(spans, is_it & (spans.kind == Kind.WAIT))
            whole[name] = _kept(mine, waits, compute, everywhere)
            stepped[name] = _kept(mine.touching(inside), waits, compute, inside)
    return Part(window.rank, len(window.steps), stepped, whole)


@dataclass(frozen=True, eq=False)
class _Rows:
    """What is counted of some spans, shape (n,) each: a table of them has a dozen columns more."""

    start_ns: Ints
    end_ns: Ints
    size_bytes: Ints

    @classmethod
    def of(cls, spans: SpanTable, keep: npt.NDArray[np.bool_]) -> _Rows:
        row = keep.nonzero()[0]
        return cls(spans.start_ns[row], spans.end_ns[row], spans.size_bytes[row])

    def __len__(self) -> int:
        return len(self.start_ns)

    def touching(self, bounds: Intervals) -> _Rows:
        """Those with time within bounds, also if they began before: so that all of them add up to the breakdown's."""
        after = bounds.end_ns.searchsorted(self.start_ns, side="right")
        keep = after < bounds.start_ns.searchsorted(np.maximum(self.end_ns, self.start_ns + 1))
        return self if keep.all() else _Rows(self.start_ns[keep], self.end_ns[keep], self.size_bytes[keep])


def _kept(mine: _Rows, waits: _Rows, compute: Intervals, bounds: Intervals) -> Kept:
    busy = union(mine.start_ns, mine.end_ns) & bounds
    has_sizes = bool(len(mine)) and bool((mine.size_bytes >= 0).all())
    return Kept(
        count=len(mine),
        busy_ns=busy.total_ns,
        hidden_ns=(busy & compute).total_ns,
        wait_ns=(union(waits.start_ns, waits.end_ns) & busy).total_ns if len(waits) else None,
        size_bytes=int(mine.size_bytes.sum()) if has_sizes else None,
    )


def combine(parts: Iterable[Part]) -> tuple[CollectiveOverlap, ...]:
    """Means per step and rank; over whole windows, with ``steps`` 0, where no step is complete."""
    parts = list(parts)
    has_steps = any(part.steps for part in parts)
    if has_steps:
        parts = [part for part in parts if part.steps]
    share = sum(part.steps for part in parts) if has_steps else len(parts)
    kept: dict[str, list[tuple[int, Kept]]] = {}
    for part in parts:
        for name, found in (part.stepped if has_steps else part.whole).items():
            kept.setdefault(name, []).append((part.rank, found))
    steps_per_rank: Counter[int] = Counter()
    for part in parts:
        steps_per_rank[part.rank] += part.steps
    steps = max(steps_per_rank.values(), default=0)
    rows = [_row(name, found, share, steps) for name, found in kept.items() if any(k.count for _, k in found)]
    return tuple(sorted(rows, key=lambda row: (-row.exposed_ns, row.name)))


def _row(name: str, found: list[tuple[int, Kept]], share: int, steps: int) -> CollectiveOverlap:
    busy_ns = sum(kept.busy_ns for _, kept in found) / share
    hidden_ns = sum(kept.hidden_ns for _, kept in found) / share
    waits = [kept.wait_ns for _, kept in found]
    sizes = [kept.size_bytes for _, kept in found if kept.count]
    wait_ns = None if None in waits else sum(wait for wait in waits if wait is not None) / share
    size_bytes = None if None in sizes else round(sum(size for size in sizes if size is not None) / share)
    return CollectiveOverlap(
        name=name,
        count=sum(kept.count for _, kept in found),
        ranks=tuple(sorted({rank for rank, _ in found})),
        steps=steps,
        busy_ns=busy_ns,
        hidden_ns=hidden_ns,
        exposed_ns=busy_ns - hidden_ns,
        wait_ns=wait_ns,
        size_bytes=size_bytes,
    )


def overlap(run: Run) -> tuple[CollectiveOverlap, ...]:
    """By exposed time, largest first."""
    return combine(parts(run).values())


def overlap_by_rank(run: Run, name: str) -> tuple[CollectiveOverlap, ...]:
    """One collective on each rank that has it, most exposed first: the mean over that rank's profiled steps."""
    ranks: dict[int, list[Part]] = {}
    for window, part in parts(run).items():
        ranks.setdefault(window.rank, []).append(part)
    found = [kind for own in ranks.values() for kind in combine(own) if kind.name == name]
    return tuple(sorted(found, key=lambda kind: (-kind.exposed_ns, kind.ranks)))


@per_run
def parts(run: Run) -> dict[Window, Part]:
    """What every window with device work has of each collective, with the waiting that matching tells."""
    waits = waiting(run).windows
    windows = [window for window in run.windows if window.device_kind != "none"]
    return {window: _whole(window, waits.get(window)) for window in windows}


@per_pair
def _whole(window: Window, waits: WindowWaits | None) -> Part:
    return _waited(measure(window), window, waits)


def of_step(run: Run, window: Window, step: int) -> Part:
    """What a window has of each collective in one of its complete ``steps``."""
    at = window.steps.index(step)
    narrowed = replace(window, steps=(step,), step_ns=window.step_ns[at : at + 1])
    return _waited(measure(narrowed), narrowed, waiting(run).windows.get(window))


_MOSTLY_FRAC = 0.6


def exposed_in(found: Sequence[CollectiveOverlap], exposed_ns: float) -> str:
    """Where exposed time is spent: ``in all-reduce`` only where all of it is in that kind of collective.

    ``mostly in all-reduce`` where most of it is and in no other kind as well, else ``in collectives``: a share beside
    this is that of all kinds. ``exposed_ns`` is that of all, in which kinds that run side by side count once.
    """
    spent = [row for row in found if row.exposed_ns > 0]
    most = [row for row in spent if row.exposed_ns >= exposed_ns * _MOSTLY_FRAC]
    if len(most) != 1 or most[0].name == "unnamed":
        return "in collectives"
    name = most[0].name.replace("_", "-")
    return f"in {name}" if len(spent) == 1 else f"mostly in {name}"


def _waited(part: Part, window: Window, waits: WindowWaits | None) -> Part:
    """With the waiting that matching tells of each collective, where the trace records none and all were matched."""
    if waits is None:
        return part
    spans, inside = window.spans, steps_of(window)
    stepped, whole = dict(part.stepped), dict(part.whole)
    for number, name in enumerate(spans.collectives):
        rows = np.flatnonzero((spans.collective == number) & (spans.kind == Kind.COLLECTIVE))
        if name not in whole or not np.isin(rows, waits.row).all():
            continue
        waited = waits.waiting(np.isin(waits.row, rows))
        for kept, bounds in ((whole, None), (stepped, inside)):
            if kept[name].wait_ns is None:
                wait_ns = (waited if bounds is None else waited & bounds).total_ns
                kept[name] = replace(kept[name], wait_ns=wait_ns)
    return replace(part, stepped=stepped, whole=whole)
