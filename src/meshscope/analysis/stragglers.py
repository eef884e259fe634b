"""Ranks that the others wait for: how late, since when, what it costs, and in what they spend the time.

One rule decides who is one, for findings, headlines and reports. The rank has to hold up the others for two hundredths
of the time traced while they compute nothing, to cause its share of all waiting, and to do so again and again, which
chance does not: late in three traced steps, by a mean that is surely as much (``noise.least_mean``), by being the
last more often than one of equals would, or by a tenth of the step and more in most of them; where fewer steps were
traced, last to ten collectives, by the same odds.

CPU ranks that share their cores are made late by the scheduler, now the one and now the other, or one of them for as
long as another program sits on its core. There it takes a twentieth of the time, and what the scheduler does not do:
work that no other rank does (``extra_work``), for which one profiled step is enough; or, by the journal of all steps,
own work that is longer than the others', beyond chance and by as large a share. Without such a journal, a mean lateness
over eight traced steps or more that is beyond chance (``noise.least_mean``).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from meshscope.analysis.extra_work import Extra, extra_work
from meshscope.analysis.instead import Spent, phase, spent
from meshscope.analysis.lateness import LATE_FRAC, NO_STEP, Lateness, collective_lateness
from meshscope.analysis.noise import least_means
from meshscope.analysis.own_work import Excess, excesses
from meshscope.analysis.parts import per_run
from meshscope.analysis.pipeline import is_pipeline
from meshscope.analysis.slow_steps import FEWEST
from meshscope.analysis.standing import shares_cores
from meshscope.analysis.steps import steps
from meshscope.analysis.waiting import RankWait, Waiting, WindowWaits, waiting
from meshscope.intervals import EMPTY, Intervals, difference
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import ratio

LEAST_FRAC, LEAST_SHARED_FRAC = 0.02, 0.05
"""What the others wait for a rank, as a share of the time traced; of ranks that share their cores."""

FEWEST_STEPS, FEWEST_TIMES = 3, 10
_TIMES_ITS_SHARE, _MOST_OF_ALL = 2, 0.75
"""It causes twice its share of all waiting, or most of it."""

_FAR_FRAC, _FAR_OFTEN, _ODDS = 0.1, 0.75, 0.02


@dataclass(frozen=True)
class Straggler:
    """One rank that came last ``last`` times of ``calls`` collectives.

    ``cost_ns`` is how long it held up a rank that waits for it, in the mean over ``waiters`` of ``others``, where
    collectives that wait side by side count once; ``cost_frac`` that as a share of ``of_ns``, what the windows of a
    rank cover in the mean. ``held_ns`` and ``held_frac`` are the same of the time in which the other computes nothing.
    ``since`` is the first of the
    ``late_steps``, of ``steps``, in which it was late by a fiftieth of the step (−1: none known). ``phase`` is what it
    spends its time in instead of waiting, ``phase_ns`` how much more of that it has than the median rank: ``compute``,
    ``copy``, ``communication``, ``data`` (waiting for its batch) or ``idle`` (its device has nothing to do: the host is
    late); "" where nothing stands out. ``journal`` is what the steps that were not profiled tell of it, where that is
    beyond chance, ``extra`` what it does that no other rank does, where that is much; ``shown_by`` says whether the
    ``traces`` show it, or the ``journal``.
    """

    rank: int
    last: int
    calls: int
    charged_ns: int
    waiters: int
    others: int
    cost_ns: float
    cost_frac: float
    of_ns: float
    since: int
    late_steps: int
    steps: int
    phase: str
    phase_ns: float
    held_ns: float
    held_frac: float
    shown_by: str
    journal: Excess | None = None
    extra: Extra | None = None


@dataclass(frozen=True, eq=False)
class _Case:
    """What every rank is measured against. ``least_frac`` is what must be lost to one, of the time or of a step."""

    run: Run
    found: Waiting
    late: Lateness
    of_ns: float
    all_ns: int
    least_frac: float

    @property
    def share(self) -> float:
        return min(_TIMES_ITS_SHARE / len(self.found.ranks), _MOST_OF_ALL)

    # Asked only where a rank costs enough, which in most runs of many ranks is none.

    @cached_property
    def spent(self) -> Spent:
        return spent(self.found, self.run)

    @cached_property
    def regular(self) -> frozenset[int]:
        """The ranks that are late beyond chance, in one way or another."""
        return frozenset((*surely_late(self.late, FEWEST_STEPS), *_often_latest(self.late), *_far_behind(self.late)))

    @cached_property
    def longer(self) -> dict[int, Excess]:
        return {one.rank: one for one in excesses(self.run)}


@per_run
def stragglers(run: Run) -> tuple[Straggler, ...]:
    """By cost, largest first; empty where nobody is late by enough to matter, or nothing was matched.

    Stages of a pipeline have different work, and wait for one another by design: none of them is a straggler.
    """
    if is_pipeline(run):
        return ()
    found = waiting(run)
    of_ns = _covered_ns(run)
    if len(found.ranks) < 2 or not of_ns:
        return ()
    case = _Case(
        run=run,
        found=found,
        late=collective_lateness(run, found),
        of_ns=of_ns,
        all_ns=sum(rank.charged_ns for rank in found.ranks),
        least_frac=LEAST_SHARED_FRAC if shares_cores(run) else LEAST_FRAC,
    )
    most_ns = _most_ns(found)
    worth = [rank for rank in found.ranks if most_ns[rank.rank] >= case.least_frac * of_ns]
    each = (_straggler(rank, case) for rank in worth)
    return tuple(sorted(filter(None, each), key=lambda straggler: (-straggler.cost_ns, straggler.rank)))


def _most_ns(found: Waiting) -> Counter[int]:
    """By rank the longest that any one rank waits for it, added up over calls: the mean of those that do is no more."""
    by_waiter: dict[int, Counter[int]] = defaultdict(Counter)
    for window, waits in found.windows.items():
        by_waiter[window.rank].update(waits.charged)
    most_ns: Counter[int] = Counter()
    for waiter, charged in by_waiter.items():
        for rank, wait_ns in charged.items():
            if rank != waiter:
                most_ns[rank] = max(most_ns[rank], wait_ns)
    return most_ns


def _straggler(rank: RankWait, case: _Case) -> Straggler | None:
    held = _for(rank.rank, case.found)
    waiters = {window.rank for window in held}
    held_ns = sum(one.idle_ns for one in held.values()) / max(len(waiters), 1)
    if held_ns < case.least_frac * case.of_ns:
        return None
    cost_ns = sum(one.waits_ns for one in held.values()) / len(waiters)
    late_steps = _late_steps(rank.rank, case.late)
    journal = _beyond_chance(rank.rank, case)
    extra = _extra(rank.rank, case)
    shown_by = "traces" if _traces_show(rank, len(late_steps), extra, case) else "journal"
    if shown_by == "journal" and (journal is None or rank.charged_ns * len(case.found.ranks) < case.all_ns):
        return None
    what, what_ns = phase(rank.rank, case.spent, case.run, case.late.steps)
    return Straggler(
        rank=rank.rank,
        last=rank.last,
        calls=rank.calls,
        charged_ns=rank.charged_ns,
        waiters=len(waiters),
        others=len(case.found.ranks) - 1,
        cost_ns=cost_ns,
        cost_frac=ratio(cost_ns, case.of_ns),
        of_ns=case.of_ns,
        since=late_steps[0] if late_steps else NO_STEP,
        late_steps=len(late_steps),
        steps=len(set(case.late.steps) - {NO_STEP}),
        phase=what,
        phase_ns=what_ns,
        held_ns=held_ns,
        held_frac=ratio(held_ns, case.of_ns),
        shown_by=shown_by,
        journal=journal,
        extra=extra,
    )


def _extra(rank: int, case: _Case) -> Extra | None:
    """What only this rank does, where that is as much of its windows as must be lost to it."""
    covered_ns = sum(window.end_ns - window.start_ns for window in case.run.windows if window.rank == rank)
    found = extra_work(rank, case.run)
    return found if found is not None and found.ns >= case.least_frac * covered_ns else None


def _traces_show(rank: RankWait, late_steps: int, extra: Extra | None, case: _Case) -> bool:
    if rank.charged_ns < case.share * case.all_ns:
        return False
    traced = len(set(case.late.steps) - {NO_STEP})
    if shares_cores(case.run):
        return extra is not None or (not _tells_work(case.run) and rank.rank in surely_late(case.late))
    if traced < FEWEST_STEPS:
        return rank.last >= FEWEST_TIMES and _is_often(rank.last, rank.calls, len(case.found.ranks))
    return late_steps >= FEWEST_STEPS and rank.rank in case.regular


@lru_cache(maxsize=4096)
def _is_often(times: int, of: int, ranks: int) -> bool:
    """Whether some one of equals would be the last so many times of so many, or more, in one of fifty cases at most."""
    odds = 1 / ranks
    tail = sum(math.comb(of, k) * odds**k * (1 - odds) ** (of - k) for k in range(times, of + 1))
    return tail * ranks <= _ODDS


def _far_behind(late: Lateness) -> tuple[int, ...]:
    """Ranks that come a tenth of a step after all others, in three quarters of the steps.

    Jitter of devices of one kind does not reach that far for one of them again and again.
    """
    if len(late.ranks) < 2 or len(late.steps) < FEWEST_STEPS:
        return ()
    late_ns = np.nan_to_num(late.late_ns)
    ordered = np.sort(late_ns, axis=0)
    is_far = (late_ns == ordered[-1]) & (
        ordered[-1] - ordered[-2] >= _FAR_FRAC * np.nan_to_num(late.step_ns, nan=np.inf)
    )
    often = is_far.sum(axis=1) >= _FAR_OFTEN * len(late.steps)
    return tuple(rank for rank, holds in zip(late.ranks, often.tolist(), strict=True) if holds)


def _often_latest(late: Lateness) -> tuple[int, ...]:
    """Ranks that are the latest of all in so many steps that no equal would be."""
    if len(late.ranks) < 2 or not late.steps:
        return ()
    latest = np.nan_to_num(late.late_ns).argmax(axis=0)
    counts = np.bincount(latest, minlength=len(late.ranks)).tolist()
    steps_ = len(late.steps)
    return tuple(
        rank for rank, count in zip(late.ranks, counts, strict=True) if _is_often(count, steps_, len(late.ranks))
    )


def _tells_work(run: Run) -> bool:
    """Whether the journal tells what each rank computes: then lateness without more of it is the scheduler's."""
    return bool((run.steps.cpu_ns >= 0).any())


def surely_late(late: Lateness, fewest: int = FEWEST) -> tuple[int, ...]:
    """Ranks that come later than the others by a fiftieth of a step, in the mean over some steps, beyond chance.

    Of eight steps or more two in a row count once: what slows one may slow the next as well.
    """
    if len(late.steps) < fewest or len(late.ranks) < 2 or np.isnan(late.step_ns).all():
        return ()
    late_ns = np.nan_to_num(late.late_ns)
    beyond_ns = late_ns - (late_ns.sum(axis=0) - late_ns) / (len(late.ranks) - 1)
    bar_ns = LATE_FRAC * float(np.nanmean(late.step_ns))
    parts = len(late.steps) if len(late.steps) < FEWEST else len(late.steps) // 2
    least_ns = least_means(beyond_ns, parts=parts, tries=len(late.ranks))
    return tuple(rank for rank, least in zip(late.ranks, least_ns.tolist(), strict=True) if least >= bar_ns)


def _beyond_chance(rank: int, case: _Case) -> Excess | None:
    """What the journal tells of a rank, where that is surely as much as must be lost to it.

    Computing is held against what the others compute: where other programs use the cores, a step is longer than the
    work in it, for all ranks alike. A fiftieth of the step it has to be all the same.
    """
    told, step_ns = case.longer.get(rank), steps(case.run).median_ns
    if told is None:
        return None
    of_ns = told.others_ns if told.phase == "compute" else step_ns
    return told if told.least_ns >= case.least_frac * of_ns and told.least_ns >= LEAST_FRAC * step_ns else None


@dataclass(frozen=True)
class _Held:
    """When one window waits for a rank, and of that when it computes nothing."""

    waits: Intervals
    idle: Intervals
    waits_ns: int
    idle_ns: int


_known: WeakKeyDictionary[WindowWaits, dict[int, _Held]] = WeakKeyDictionary()
"""Many ranks times many windows: a live screen pays for those that are new."""


def _held(rank: int, window: Window, waits: WindowWaits) -> _Held:
    known = _known.setdefault(waits, {})
    if rank not in known:
        rows = waits.last_rank == rank
        told = waits.waiting(rows) if rows.any() else EMPTY
        idle = difference(told, window.spans.busy(Kind.COMPUTE)) if len(told) else EMPTY
        known[rank] = _Held(told, idle, told.total_ns, idle.total_ns)
    return known[rank]


def _for(rank: int, found: Waiting) -> dict[Window, _Held]:
    """Of windows of other ranks that wait for this one, or whose rank does in another window."""
    each = {window: _held(rank, window, one) for window, one in found.windows.items() if window.rank != rank}
    waiters = {window.rank for window, held in each.items() if len(held.waits)}
    return {window: held for window, held in each.items() if window.rank in waiters}


def held_up(rank: int, found: Waiting) -> dict[Window, Intervals]:
    """When windows of other ranks wait for this one and compute nothing: what it costs. Of those that wait for it, or
    whose rank does in another window."""
    return {window: held.idle for window, held in _for(rank, found).items()}


def _covered_ns(run: Run) -> float:
    """What the windows of a rank cover, in the mean over ranks."""
    total: dict[int, int] = defaultdict(int)
    for window in run.windows:
        total[window.rank] += window.end_ns - window.start_ns
    return float(np.mean(list(total.values()))) if total else 0.0


def _late_steps(rank: int, late: Lateness) -> list[int]:
    if rank not in late.ranks:
        return []
    row = np.nan_to_num(late.late_ns[late.ranks.index(rank)])
    is_late = row >= LATE_FRAC * np.nan_to_num(late.step_ns, nan=np.inf)
    return [step for step, holds in zip(late.steps, is_late.tolist(), strict=True) if holds and step != NO_STEP]
