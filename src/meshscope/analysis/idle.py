"""Why a rank's device did nothing: what its next piece of work was waiting for, to the nanosecond.

A device without work begins again when a kernel or copy starts. Until the host had begun to launch that one, the host
was late, and what the host did meanwhile is the cause; during the launch call the cause is the launch; after it the
work was queued and the device had not started it. Without the launch in the trace, the cause is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.analysis.host_activity import ACTIVITIES, LAUNCHING, charged, threads
from meshscope.analysis.parts import per_window
from meshscope.intervals import EMPTY, Intervals, complement, difference, intersection, union
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]

QUEUED, UNKNOWN, WAIT = "queued", "unknown", "wait"
CAUSES = (*ACTIVITIES, WAIT, QUEUED, UNKNOWN)
HOST_LATE = ACTIVITIES
"""Causes in which the host had not launched the next work yet."""

WORK = (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)


@dataclass(frozen=True)
class Gap:
    """The longest stretch without work: when, what ended it, and the cause that has most of it."""

    start_ns: int
    end_ns: int
    next_name: str
    cause: str


@dataclass(frozen=True)
class Idle:
    """One rank over its windows. ``causes`` add up to ``idle_ns`` exactly; ``gaps`` is how many stretches there are.

    ``late_starts`` of them ended with work that the host had begun to launch after the stretch began. Of the time in
    which the device did not compute but communicated or copied, the next kernel had been launched in ``waits`` (by
    what it waited for: ``collective`` or ``copy``) and had not been in ``late_beside_ns``; ``unseen_beside_ns`` is
    where its launch is not known. ``why`` says why there are no causes at all, "" where there are.
    """

    rank: int
    span_ns: int = 0
    idle_ns: int = 0
    gaps: int = 0
    late_starts: int = 0
    causes: dict[str, int] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    late_beside_ns: int = 0
    unseen_beside_ns: int = 0
    longest: Gap | None = None
    why: str = ""

    @property
    def host_late_ns(self) -> int:
        return sum(self.causes.get(cause, 0) for cause in HOST_LATE)

    @property
    def unknown_ns(self) -> int:
        return self.causes.get(UNKNOWN, 0)


NO_LAUNCHES = "the trace shows no launches"
NO_HOST = "the trace shows what devices did, not what the host did"


@per_window
def measure(window: Window) -> Idle | None:
    """The window's idle time; None where it holds no device work."""
    spans = window.spans
    work = np.flatnonzero(np.isin(spans.kind, WORK))
    if not len(work):
        return None
    busy = union(spans.start_ns[work], spans.end_ns[work])
    if not len(busy):  # work without length is no work: as in the breakdown, there is no span to be idle in
        return Idle(window.rank)
    gaps = complement(busy, window.start_ns, window.end_ns)
    base = Idle(window.rank, window.end_ns - window.start_ns, gaps.total_ns, len(gaps))
    if window.framework != "torch":
        return _with(base, why=NO_HOST)
    if window.device_kind == "cpu":
        return _cpu(window, base, gaps)
    if not (spans.kind == Kind.LAUNCH).any():
        return _with(base, why=NO_LAUNCHES)
    return _gpu(window, base, gaps, work)


def _with(base: Idle, **about: Any) -> Idle:
    return Idle(**{**vars(base), **about})


def _cpu(window: Window, base: Idle, gaps: Intervals) -> Idle:
    """Nothing is launched: what the computing thread did beside operators is what there is to say."""
    spans = window.spans
    known = threads(window)
    computing = spans.lane[spans.kind == Kind.COMPUTE]
    waits = spans.busy(Kind.WAIT)
    causes: Counter[str] = Counter({WAIT: intersection(gaps, waits).total_ns})
    main = int(np.bincount(computing).argmax()) if len(computing) else -1
    causes.update(charged(difference(gaps, waits), main, known))
    return _with(base, causes=dict(+causes))


def _gpu(window: Window, base: Idle, gaps: Intervals, work: Ints) -> Idle:
    spans = window.spans
    parts = _Parts.of(spans, gaps, _started(spans, work, gaps.end_ns))
    causes = _causes(window, parts)
    beside = _beside(spans)
    return _with(
        base,
        late_starts=int((parts.launch_start_ns > gaps.start_ns)[parts.is_known].sum()),
        causes=dict(+causes),
        longest=_longest(window, gaps, parts),
        **beside,
    )


def _started(spans: SpanTable, work: Ints, at_ns: Ints) -> Ints:
    """The row that starts at each of some moments: that of the latest launch where there are several."""
    rows = work[np.lexsort((spans.link[work], spans.start_ns[work]))]
    return rows[np.searchsorted(spans.start_ns[rows], at_ns, side="right") - 1]


@dataclass(frozen=True, eq=False)
class _Parts:
    """Each gap [start, end) cut at the launch of what ends it: host late, in the launch, queued. Shape (gaps,)."""

    row: Ints
    thread: Ints
    start_ns: Ints
    launch_start_ns: Ints
    launch_end_ns: Ints
    end_ns: Ints
    is_known: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, spans: SpanTable, gaps: Intervals, row: Ints) -> _Parts:
        link = spans.link[row]
        # A launch that begins after its kernel contradicts itself: two clocks, or a number used twice.
        is_known = (link >= 0) & (spans.start_ns[link] <= spans.start_ns[row])
        start_ns, end_ns = gaps.start_ns, gaps.end_ns
        return cls(
            row=row,
            thread=np.where(is_known, spans.lane[link], -1).astype(np.int64),
            start_ns=start_ns,
            launch_start_ns=np.where(is_known, np.clip(spans.start_ns[link], start_ns, end_ns), start_ns),
            launch_end_ns=np.where(is_known, np.clip(spans.end_ns[link], start_ns, end_ns), start_ns),
            end_ns=end_ns,
            is_known=is_known,
        )


def _causes(window: Window, parts: _Parts) -> Counter[str]:
    known = threads(window)
    causes: Counter[str] = Counter()
    for thread in np.unique(parts.thread[parts.is_known]).tolist():
        mine = parts.thread == thread
        late = union(parts.start_ns[mine], parts.launch_start_ns[mine])
        causes.update(charged(late, thread, known))
    queued = parts.end_ns - parts.launch_end_ns
    causes[LAUNCHING] += int((parts.launch_end_ns - parts.launch_start_ns).sum())
    causes[QUEUED] += int(queued[parts.is_known].sum())
    causes[UNKNOWN] += int(queued[~parts.is_known].sum())
    return causes


def _longest(window: Window, gaps: Intervals, parts: _Parts) -> Gap | None:
    if not len(gaps):
        return None
    at = int((gaps.end_ns - gaps.start_ns).argmax())
    one = _Parts(**{name: column[at : at + 1] for name, column in vars(parts).items()})
    ((cause, _),) = _causes(window, one).most_common(1)
    return Gap(int(gaps.start_ns[at]), int(gaps.end_ns[at]), _name(window.spans, int(parts.row[at])), cause)


def _name(spans: SpanTable, row: int) -> str:
    return spans.name_of(row) if spans.name[row] >= 0 else ""


def _beside(spans: SpanTable) -> dict[str, Any]:
    """Why nothing is computed beside communication and copies, cut at the launch of the next kernel."""
    rows = np.flatnonzero(spans.kind == Kind.COMPUTE)
    communicating = spans.busy(Kind.COLLECTIVE)
    copying = difference(spans.busy(Kind.COPY), communicating)
    compute = union(spans.start_ns[rows], spans.end_ns[rows])
    beside = difference(communicating | copying, compute)
    late, unseen = EMPTY, beside
    if len(compute):
        pauses = Intervals(compute.end_ns[:-1], compute.start_ns[1:])
        parts = _Parts.of(spans, pauses, _started(spans, rows, pauses.end_ns))
        known = parts.is_known
        late = intersection(beside, union(parts.start_ns[known], parts.launch_start_ns[known]))
        seen = union(parts.start_ns[known], parts.end_ns[known])
        unseen = difference(beside, seen)
    waited = difference(difference(beside, late), unseen)
    found = {
        "collective": intersection(waited, communicating).total_ns,
        "copy": intersection(waited, copying).total_ns,
    }
    return {"waits": found, "late_beside_ns": late.total_ns, "unseen_beside_ns": unseen.total_ns}


def combine(parts: Iterable[Idle]) -> Idle:
    """Several windows of one rank."""
    return reduce(_added, parts)


def _added(a: Idle, b: Idle) -> Idle:
    longest = [gap for gap in (a.longest, b.longest) if gap is not None]
    return Idle(
        rank=a.rank,
        span_ns=a.span_ns + b.span_ns,
        idle_ns=a.idle_ns + b.idle_ns,
        gaps=a.gaps + b.gaps,
        late_starts=a.late_starts + b.late_starts,
        causes=dict(Counter(a.causes) + Counter(b.causes)),
        waits=dict(Counter(a.waits) + Counter(b.waits)),
        late_beside_ns=a.late_beside_ns + b.late_beside_ns,
        unseen_beside_ns=a.unseen_beside_ns + b.unseen_beside_ns,
        longest=max(longest, key=lambda gap: gap.end_ns - gap.start_ns, default=None),
        why=a.why or b.why,
    )


def idle(run: Run) -> tuple[Idle, ...]:
    """Per rank, sorted by rank; ranks without device work are absent."""
    ranks: dict[int, list[Idle]] = {}
    for window in run.windows:
        part = measure(window)
        if part is not None:
            ranks.setdefault(window.rank, []).append(part)
    return tuple(combine(ranks[rank]) for rank in sorted(ranks))


def doubts(found: Iterable[Idle]) -> tuple[tuple[str, str], ...]:
    """Why causes are missing, once for each reason."""
    whys = dict.fromkeys(one.why for one in found if one.why)
    return tuple(("idle", f"{why}, so why a device was idle is not known") for why in whys)
