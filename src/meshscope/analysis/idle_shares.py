"""Why each device does not compute in its mean step: idle by what it waits for, and what it waits for beside
communication and copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from meshscope.analysis.breakdown import Breakdown, RankBreakdown, breakdown
from meshscope.analysis.host_activity import DATA, LAUNCHING, MEMORY, OPERATORS, OPTIMIZER, PYTHON, SYNC
from meshscope.analysis.idle import QUEUED, UNKNOWN, WAIT, Idle, idle
from meshscope.analysis.launches import Launches, launches
from meshscope.run import Run

ENDS = "ends"
"""Idle time of a step before the first or after the last device work that its window holds."""

HOST, PEERS = "host", "peers"
GROUPS = {
    HOST: (LAUNCHING, OPERATORS, PYTHON, OPTIMIZER, SYNC, MEMORY),
    DATA: (DATA,),
    PEERS: (WAIT,),
    QUEUED: (QUEUED,),
    UNKNOWN: (UNKNOWN,),
    ENDS: (ENDS,),
}
"""Causes of idle time by who is waited for, in the order in which they are told."""

COLLECTIVE, COPY = "collective", "copy"
BESIDE = (COLLECTIVE, COPY, HOST, UNKNOWN)


@dataclass(frozen=True)
class RankIdle:
    """One rank in the mean of its ``steps`` complete steps; over its whole windows where ``steps`` is 0. Nanoseconds.

    ``causes`` (those of :mod:`meshscope.analysis.idle`, and ENDS) add up to ``idle_ns`` but for rounding; empty where
    ``why`` says why they are not known. ``beside`` is time in which nothing but communication or copies ran, by what
    the next kernel waited for: ``collective`` or ``copy`` where it had been launched, ``host`` where it had not been,
    ``unknown`` where its launch is not in the trace; empty where nothing of that is told.
    """

    rank: int
    device_kind: str
    steps: int
    span_ns: float
    idle_ns: float
    causes: dict[str, float] = field(default_factory=dict)
    beside: dict[str, float] = field(default_factory=dict)
    why: str = ""
    launches: Launches | None = None
    gaps: int = 0

    def of(self, group: str) -> float:
        """The idle time of a group of causes."""
        return sum(self.causes.get(cause, 0.0) for cause in GROUPS[group])


@dataclass(frozen=True)
class IdleShares:
    """``ranks`` that have a mean step where any has one, else all with device work; ``others`` are without."""

    ranks: tuple[RankIdle, ...] = ()
    others: tuple[int, ...] = ()


NOTHING = IdleShares()


def idle_shares(run: Run) -> IdleShares:
    """By rank; ranks without device work are in neither."""
    told = {rank.rank: rank for rank in breakdown(run) if rank.device_kind != "none" and rank.total.span_ns > 0}
    has_steps = any(rank.per_step is not None for rank in told.values())
    fed = {one.rank: one for one in launches(run)}
    found, others = [], []
    for one in idle(run):
        whole = told.get(one.rank)
        part = (whole.per_step if has_steps else whole.total) if whole is not None else None
        if whole is None or part is None:
            others.append(one.rank)
        else:
            found.append(_rank(one, whole, part, fed.get(one.rank)))
    return IdleShares(tuple(found), tuple(others))


def _rank(one: Idle, whole: RankBreakdown, part: Breakdown, fed: Launches | None) -> RankIdle:
    steps = len(whole.steps) if part is whole.per_step else 0
    causes, waits, late_ns, unseen_ns = (
        (one.step_causes, one.step_waits, one.step_late_beside_ns, one.step_unseen_beside_ns)
        if steps
        else (one.causes, one.waits, one.late_beside_ns, one.unseen_beside_ns)
    )
    each = _each(causes, steps)
    ends_ns = part.idle_ns - sum(each.values())
    if steps and not one.why and ends_ns >= 1:  # less than that is rounding
        each[ENDS] = ends_ns
    return RankIdle(
        rank=one.rank,
        device_kind=whole.device_kind,
        steps=steps,
        span_ns=part.span_ns,
        idle_ns=part.idle_ns,
        causes={} if one.why else each,
        beside=_each({**waits, HOST: late_ns, UNKNOWN: unseen_ns}, steps),
        why=one.why,
        launches=fed,
        gaps=one.gaps,
    )


def _each(times_ns: Mapping[str, int], steps: int) -> dict[str, float]:
    return {name: ns / max(steps, 1) for name, ns in times_ns.items() if ns}


def mean(ranks: Sequence[RankIdle]) -> RankIdle:
    """The mean of some ranks (at least one), each counting as much; its causes are those of the ranks that tell any."""
    told = [one for one in ranks if not one.why]
    return RankIdle(
        rank=-1,
        device_kind=ranks[0].device_kind,
        steps=sum(one.steps for one in ranks),
        span_ns=sum(one.span_ns for one in ranks) / len(ranks),
        idle_ns=sum(one.idle_ns for one in ranks) / len(ranks),
        causes=_means([one.causes for one in told]),
        beside=_means([one.beside for one in told]),
        why="" if told else next((one.why for one in ranks if one.why), ""),
    )


def _means(times_ns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names: Iterable[str] = dict.fromkeys(name for one in times_ns for name in one)
    return {name: sum(one.get(name, 0.0) for one in times_ns) / len(times_ns) for name in names}
