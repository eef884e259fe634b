"""Ranks that the others wait for: how late, since when, what it costs, and in what they spend the time.

One rule decides who is one, for findings, headlines and reports. The rank has to hold up the others for two hundredths
of the time traced while they compute nothing, to cause its share of all waiting, and to do so again and again: in three
traced steps, or, where fewer were traced, in ten collectives.

CPU ranks that share their cores are made late by the scheduler, now the one and now the other, or one of them for as
long as another program sits on its core. There it takes a twentieth of the time, and what the scheduler does not do:
work that no other rank does (``extra_work``), for which one profiled step is enough; or, by the journal of all steps,
own work that is longer than the others', beyond chance and by as large a share. Without such a journal, a mean lateness
over eight traced steps or more that is beyond chance (``noise.least_mean``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.extra_work import Extra, extra_work
from meshscope.analysis.instead import Spent, phase, spent
from meshscope.analysis.lateness import LATE_FRAC, NO_STEP, Lateness, collective_lateness
from meshscope.analysis.noise import least_mean
from meshscope.analysis.own_work import Excess, excesses
from meshscope.analysis.parts import per_run
from meshscope.analysis.slow_steps import FEWEST
from meshscope.analysis.standing import shares_cores
from meshscope.analysis.steps import steps
from meshscope.analysis.waiting import RankWait, Waiting, waiting
from meshscope.intervals import difference
from meshscope.run import Run
from meshscope.spans import Kind
from meshscope.units import ratio

LEAST_FRAC, LEAST_SHARED_FRAC = 0.02, 0.05
"""What the others wait for a rank, as a share of the time traced; of ranks that share their cores."""

FEWEST_STEPS, FEWEST_TIMES = 3, 10
_TIMES_ITS_SHARE, _MOST_OF_ALL = 2, 0.75
"""It causes twice its share of all waiting, or most of it."""


@dataclass(frozen=True)
class Straggler:
    """One rank that came last ``last`` times of ``calls`` collectives.

    ``cost_ns`` is how long it held up another rank, in the mean over those; ``cost_frac`` that as a share of ``of_ns``,
    what the windows of a rank cover in the mean. ``held_ns`` and ``held_frac`` are the same of the time in which the
    other computes nothing, and collectives that wait side by side count once. ``since`` is the first of the
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
    spent: Spent
    longer: dict[int, Excess]
    of_ns: float
    all_ns: int
    least_frac: float

    @property
    def share(self) -> float:
        return min(_TIMES_ITS_SHARE / len(self.found.ranks), _MOST_OF_ALL)


@per_run
def stragglers(run: Run) -> tuple[Straggler, ...]:
    """By cost, largest first; empty where nobody is late by enough to matter, or nothing was matched."""
    found = waiting(run)
    of_ns = _covered_ns(run)
    if len(found.ranks) < 2 or not of_ns:
        return ()
    case = _Case(
        run=run,
        found=found,
        late=collective_lateness(run, found),
        spent=spent(found, run),
        longer={one.rank: one for one in excesses(run)},
        of_ns=of_ns,
        all_ns=sum(rank.charged_ns for rank in found.ranks),
        least_frac=LEAST_SHARED_FRAC if shares_cores(run) else LEAST_FRAC,
    )
    each = (_straggler(rank, case) for rank in found.ranks)
    return tuple(sorted(filter(None, each), key=lambda straggler: (-straggler.cost_ns, straggler.rank)))


def _straggler(rank: RankWait, case: _Case) -> Straggler | None:
    cost_ns = rank.charged_ns / (len(case.found.ranks) - 1)
    if cost_ns < case.least_frac * case.of_ns:
        return None
    held_ns = _held_ns(rank.rank, case.found)
    if held_ns < case.least_frac * case.of_ns:
        return None
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
    return late_steps >= FEWEST_STEPS or (traced < FEWEST_STEPS and rank.last >= FEWEST_TIMES)


def _tells_work(run: Run) -> bool:
    """Whether the journal tells what each rank computes: then lateness without more of it is the scheduler's."""
    return bool((run.steps.cpu_ns >= 0).any())


def surely_late(late: Lateness) -> tuple[int, ...]:
    """Ranks that come later than the others by a fiftieth of a step, in the mean over eight or more, beyond chance."""
    if len(late.steps) < FEWEST or len(late.ranks) < 2 or np.isnan(late.step_ns).all():
        return ()
    late_ns = np.nan_to_num(late.late_ns)
    beyond_ns = late_ns - (late_ns.sum(axis=0) - late_ns) / (len(late.ranks) - 1)
    bar_ns = LATE_FRAC * float(np.nanmean(late.step_ns))
    least_ns = (least_mean(row, parts=len(row) // 2, tries=len(late.ranks)) for row in beyond_ns)
    return tuple(rank for rank, least in zip(late.ranks, least_ns, strict=True) if least >= bar_ns)


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


def _held_ns(rank: int, found: Waiting) -> float:
    """How long another rank waits for this one while it computes nothing, in the mean over the others."""
    total: dict[int, int] = defaultdict(int)
    for window, waits in found.windows.items():
        if window.rank != rank:
            held = waits.waiting(waits.last_rank == rank)
            total[window.rank] += difference(held, window.spans.busy(Kind.COMPUTE)).total_ns
    return float(np.mean(list(total.values()))) if total else 0.0


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
