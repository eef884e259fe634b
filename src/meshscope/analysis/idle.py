"""Why a rank's device did nothing: what its next piece of work was waiting for, to the nanosecond.

A device without work begins again when a kernel or copy starts. Until the host had begun to launch that one, the host
was late, and what the host did meanwhile is the cause; during the launch call the cause is the launch; after it the
work was queued and the device had not started it. Without the launch in the trace, the cause is unknown.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.analysis.gaps import Parts, started
from meshscope.analysis.host_activity import ACTIVITIES, LAUNCHING, Activity, charged, threads
from meshscope.analysis.in_steps import steps_of
from meshscope.analysis.parts import per_window
from meshscope.intervals import EMPTY, Intervals, complement, difference, intersection, union
from meshscope.run import Run
from meshscope.spans import Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]

QUEUED, UNKNOWN, WAIT = "queued", "unknown", "wait"
CAUSES = (*ACTIVITIES, WAIT, QUEUED, UNKNOWN)
HOST_LATE = ACTIVITIES
"""Causes in which the host had not launched the next work yet."""

PAUSE_NS = 1_000_000
"""No launch takes so long: in a gap like this the host did something else than launch one kernel after the other."""

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

    ``steps`` is how many complete steps there are, ``step_causes`` what of the causes lies in them, with what the
    device waited for before its first work where a step begins before that (its batch, say); ``pauses`` of the
    gaps are as long as :data:`PAUSE_NS` or longer, and ``pause_causes`` and ``step_pause_causes`` are theirs.
    ``late_starts`` of the gaps ended with work that the host had begun to launch after the stretch began. Of the time
    in which the device did not compute but communicated or copied, the next kernel had been launched in ``waits`` (by
    what it waited for: ``collective`` or ``copy``) and had not been in ``late_beside_ns``; ``unseen_beside_ns`` is
    where its launch is not known. ``step_waits``, ``step_late_beside_ns`` and ``step_unseen_beside_ns`` are what of
    these lies in complete steps. ``why`` says why there are no causes at all, "" where there are.
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
    steps: int = 0
    step_causes: dict[str, int] = field(default_factory=dict)
    pauses: int = 0
    pause_causes: dict[str, int] = field(default_factory=dict)
    step_pause_causes: dict[str, int] = field(default_factory=dict)
    step_waits: dict[str, int] = field(default_factory=dict)
    step_late_beside_ns: int = 0
    step_unseen_beside_ns: int = 0

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
    return _with(base, **_charges(window, _cpu_causes(window, gaps), gaps, {}))


def _cpu_causes(window: Window, gaps: Intervals) -> Activity:
    """Nothing is launched: what the computing thread did beside operators is what there is to say."""
    spans = window.spans
    known = threads(window)
    computing = spans.lane[spans.kind == Kind.COMPUTE]
    waits = spans.busy(Kind.WAIT)
    main = int(np.bincount(computing).argmax()) if len(computing) else -1
    return {WAIT: intersection(gaps, waits)} | charged(difference(gaps, waits), main, known)


def idle_when(window: Window) -> Activity:
    """When a window was idle, by cause; empty where :func:`measure` says why there are no causes, or has none."""
    found, spans = measure(window), window.spans
    if found is None or found.why or not found.gaps:
        return {}
    work = np.flatnonzero(np.isin(spans.kind, WORK))
    gaps = complement(union(spans.start_ns[work], spans.end_ns[work]), window.start_ns, window.end_ns)
    if window.device_kind == "cpu":
        return _cpu_causes(window, gaps)
    return _causes(window, Parts.of(spans, gaps, started(spans, work, gaps.end_ns)))


def before_work(window: Window) -> Activity:
    """What a device of a torch rank waited for from the beginning of its first step to its first work, by cause; empty
    where no step begins before that. It is no part of the window's own idle time, but of that step's."""
    spans, inside = window.spans, steps_of(window)
    work = np.flatnonzero(np.isin(spans.kind, WORK))
    is_told = window.framework == "torch" and window.device_kind == "gpu" and bool((spans.kind == Kind.LAUNCH).any())
    if not is_told or not len(work) or not len(inside) or inside.start_ns[0] >= window.start_ns:
        return {}
    gap = Intervals(inside.start_ns[:1], np.array([window.start_ns], dtype=np.int64))
    return _causes(window, Parts.of(spans, gap, started(spans, work, gap.end_ns)))


def pauses_of(gaps: Intervals) -> Intervals:
    """Those as long as :data:`PAUSE_NS` or longer."""
    is_pause = gaps.end_ns - gaps.start_ns >= PAUSE_NS
    return Intervals(gaps.start_ns[is_pause], gaps.end_ns[is_pause])


def joined(some: Activity, others: Activity) -> Activity:
    return {cause: some.get(cause, EMPTY) | others.get(cause, EMPTY) for cause in (*some, *others)}


def all_of(causes: Activity) -> Intervals:
    return reduce(operator.or_, causes.values(), EMPTY)


def _charges(window: Window, causes: Activity, gaps: Intervals, early: Activity) -> dict[str, Any]:
    """The causes as times: altogether, in complete steps, and in pauses."""
    pauses = pauses_of(gaps)
    inside = steps_of(window)
    in_steps = {cause: when & inside for cause, when in joined(causes, early).items()}
    step_pauses = pauses | pauses_of(all_of(early))
    return {
        "causes": _times(causes),
        "steps": len(window.steps),
        "step_causes": _times(in_steps),
        "pauses": len(pauses),
        "pause_causes": _times({cause: when & pauses for cause, when in causes.items()}),
        "step_pause_causes": _times({cause: when & step_pauses for cause, when in in_steps.items()}),
    }


def _times(causes: Activity) -> dict[str, int]:
    return {cause: when.total_ns for cause, when in causes.items() if when.total_ns}


def _gpu(window: Window, base: Idle, gaps: Intervals, work: Ints) -> Idle:
    spans = window.spans
    parts = Parts.of(spans, gaps, started(spans, work, gaps.end_ns))
    beside = _beside(spans, steps_of(window))
    return _with(
        base,
        late_starts=int((parts.launch_start_ns > gaps.start_ns)[parts.is_known].sum()),
        **_charges(window, _causes(window, parts), gaps, before_work(window)),
        longest=_longest(window, gaps, parts),
        **beside,
    )


def _causes(window: Window, parts: Parts) -> Activity:
    known, is_known = threads(window), parts.is_known
    causes: Activity = {}
    for thread in np.unique(parts.thread[is_known]).tolist():
        mine = parts.thread == thread
        late = charged(union(parts.start_ns[mine], parts.launch_start_ns[mine]), thread, known)
        causes = {cause: when | causes.get(cause, EMPTY) for cause, when in late.items()}
    launching = union(parts.launch_start_ns, parts.launch_end_ns)
    return causes | {
        LAUNCHING: causes.get(LAUNCHING, EMPTY) | launching,
        QUEUED: union(parts.launch_end_ns[is_known], parts.end_ns[is_known]),
        UNKNOWN: union(parts.launch_end_ns[~is_known], parts.end_ns[~is_known]),
    }


def _longest(window: Window, gaps: Intervals, parts: Parts) -> Gap | None:
    if not len(gaps):
        return None
    at = int((gaps.end_ns - gaps.start_ns).argmax())
    one = Parts(**{name: column[at : at + 1] for name, column in vars(parts).items()})
    times = _times(_causes(window, one))
    cause = max(times, key=lambda cause: times[cause])
    return Gap(int(gaps.start_ns[at]), int(gaps.end_ns[at]), _name(window.spans, int(parts.row[at])), cause)


def _name(spans: SpanTable, row: int) -> str:
    return spans.name_of(row) if spans.name[row] >= 0 else ""


def _beside(spans: SpanTable, inside: Intervals) -> dict[str, Any]:
    """Why nothing is computed beside communication and copies, cut at the launch of the next kernel."""
    rows = np.flatnonzero(spans.kind == Kind.COMPUTE)
    communicating = spans.busy(Kind.COLLECTIVE)
    copying = difference(spans.busy(Kind.COPY), communicating)
    compute = union(spans.start_ns[rows], spans.end_ns[rows])
    beside = difference(communicating | copying, compute)
    late, unseen = EMPTY, beside
    if len(compute):
        pauses = Intervals(compute.end_ns[:-1], compute.start_ns[1:])
        parts = Parts.of(spans, pauses, started(spans, rows, pauses.end_ns))
        known = parts.is_known
        late = intersection(beside, union(parts.start_ns[known], parts.launch_start_ns[known]))
        seen = union(parts.start_ns[known], parts.end_ns[known])
        unseen = difference(beside, seen)
    waited = difference(difference(beside, late), unseen)
    waits = {"collective": intersection(waited, communicating), "copy": intersection(waited, copying)}
    return {
        "waits": {name: when.total_ns for name, when in waits.items()},
        "late_beside_ns": late.total_ns,
        "unseen_beside_ns": unseen.total_ns,
        "step_waits": {name: (when & inside).total_ns for name, when in waits.items()},
        "step_late_beside_ns": (late & inside).total_ns,
        "step_unseen_beside_ns": (unseen & inside).total_ns,
    }


_CHARGES = ("causes", "step_causes", "pause_causes", "step_pause_causes", "waits", "step_waits")
_SUMS = ("span_ns", "idle_ns", "gaps", "late_starts", "late_beside_ns", "unseen_beside_ns", "steps", "pauses",
         "step_late_beside_ns", "step_unseen_beside_ns")  # fmt: skip


def combine(parts: Iterable[Idle]) -> Idle:
    """Several windows of one rank."""
    return reduce(_added, parts)


def _added(a: Idle, b: Idle) -> Idle:
    longest = [gap for gap in (a.longest, b.longest) if gap is not None]
    added: dict[str, Any] = {name: getattr(a, name) + getattr(b, name) for name in _SUMS}
    added |= {name: dict(Counter(getattr(a, name)) + Counter(getattr(b, name))) for name in _CHARGES}
    return Idle(
        rank=a.rank,
        longest=max(longest, key=lambda gap: gap.end_ns - gap.start_ns, default=None),
        why=a.why or b.why,
        **added,
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
