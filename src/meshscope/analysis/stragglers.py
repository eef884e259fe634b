"""Ranks that the others wait for: how late, since when, what it costs, and in what they spend the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.lateness import LATE_FRAC, NO_STEP, Lateness, collective_lateness, input_lateness
from meshscope.analysis.rounds import rounds
from meshscope.analysis.waiting import Waiting, WindowWaits, waiting
from meshscope.intervals import Intervals
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import ratio

MATERIAL_FRAC = 0.01
"""A rank is told when the time for which it holds up another, in the mean, is this share of the time looked at."""

_TIMES_ITS_SHARE, _MOST_OF_ALL, _FEWEST_TIMES, _ONCE_FRAC = 2, 0.75, 2, 0.05
"""And when that is twice its share of all waiting, or most of it; for one collective alone, a twentieth of the time."""

PHASES = ("compute", "copy", "communication", "idle")


@dataclass(frozen=True)
class Straggler:
    """One rank that came last ``last`` times of ``calls`` collectives.

    ``cost_ns`` is how long it held up another rank, in the mean over those; ``cost_frac`` that as a share of ``of_ns``,
    what the windows of a rank cover in the mean. ``since`` is the first of the
    ``late_steps``, of ``steps``, in which it was late by a fiftieth of the step (−1: none known). ``phase`` is what it
    spends its time in instead of waiting, ``phase_ns`` how much more of that it has than the median rank: ``compute``,
    ``copy``, ``communication``, ``data`` (waiting for its batch) or ``idle`` (its device has nothing to do: the host is
    late); "" where nothing stands out.
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


def stragglers(run: Run) -> tuple[Straggler, ...]:
    """By cost, largest first; empty where nobody is late by enough to matter, or nothing was matched."""
    found = waiting(run)
    if len(found.ranks) < 2:
        return ()
    late = collective_lateness(run, found)
    spent = _spent(found, run)
    all_ns = sum(rank.charged_ns for rank in found.ranks)
    share = min(_TIMES_ITS_SHARE / len(found.ranks), _MOST_OF_ALL)
    of_ns = _covered_ns(run)
    told = []
    for rank in found.ranks:
        cost_ns = rank.charged_ns / (len(found.ranks) - 1)
        if (
            not of_ns
            or cost_ns < MATERIAL_FRAC * of_ns
            or rank.charged_ns < share * all_ns
            or (rank.last < _FEWEST_TIMES and cost_ns < _ONCE_FRAC * of_ns)
        ):
            continue
        phase, phase_ns = _phase(rank.rank, spent, run, late)
        late_steps = _late_steps(rank.rank, late)
        told.append(
            Straggler(
                rank=rank.rank,
                last=rank.last,
                calls=rank.calls,
                charged_ns=rank.charged_ns,
                cost_ns=cost_ns,
                cost_frac=ratio(cost_ns, of_ns),
                of_ns=of_ns,
                since=late_steps[0] if late_steps else NO_STEP,
                late_steps=len(late_steps),
                steps=len(set(late.steps) - {NO_STEP}),
                phase=phase,
                phase_ns=phase_ns,
            )
        )
    return tuple(sorted(told, key=lambda straggler: (-straggler.cost_ns, straggler.rank)))


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


def _spent(found: Waiting, run: Run) -> dict[int, dict[str, int]]:
    """What each rank did in the time that the windows of all ranks cover: the same stretch of the common clock.

    Compute, copies beside it, communication beside both, idle; and waiting, so that they add up to the time.
    """
    total: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys((*PHASES, "wait"), 0))
    for members in rounds(run):
        known = [(window, found.windows[window]) for window in members if window in found.windows]
        if len(known) < 2:
            continue
        start_ns = max(_common_ns(window.start_ns, waits) for window, waits in known)
        end_ns = min(_common_ns(window.end_ns, waits) for window, waits in known)
        for window, waits in known:
            ahead_ns = window.start_ns - _common_ns(window.start_ns, waits)
            for name, value in _window_spent(window, waits, start_ns + ahead_ns, end_ns + ahead_ns).items():
                total[window.rank][name] += value
    return dict(total)


def _common_ns(time_ns: int, waits: WindowWaits) -> int:
    return int(waits.clock.common(np.array([time_ns], dtype=np.int64))[0])


def _window_spent(window: Window, waits: WindowWaits, start_ns: int, end_ns: int) -> dict[str, int]:
    if end_ns <= start_ns:
        return {}
    within = Intervals(np.array([start_ns]), np.array([end_ns]))
    spans = window.spans
    compute = spans.busy(Kind.COMPUTE) & within
    copy = (spans.busy(Kind.COPY) & within) - compute
    communication = (spans.busy(Kind.COLLECTIVE) & within) - (compute | copy)
    wait = waits.waiting(np.ones(len(waits.row), dtype=bool)) & communication
    busy_ns = compute.total_ns + copy.total_ns + communication.total_ns
    return {
        "compute": compute.total_ns,
        "copy": copy.total_ns,
        "communication": communication.total_ns - wait.total_ns,
        "wait": wait.total_ns,
        "idle": end_ns - start_ns - busy_ns,
    }


def _phase(rank: int, spent: dict[int, dict[str, int]], run: Run, late: Lateness) -> tuple[str, float]:
    """What the rank has most more of than the median rank."""
    if rank not in spent or len(spent) < 2:
        return "", 0.0
    middle = {name: _middle(parts[name] for parts in spent.values()) for name in PHASES}
    excess = {name: float(spent[rank][name] - middle[name]) for name in PHASES}
    phase = max(excess, key=lambda name: excess[name])
    if excess[phase] <= 0:
        return "", 0.0
    data_ns = _data_excess(rank, run, late.steps)
    return ("data", data_ns) if data_ns >= 0.5 * excess[phase] else (phase, excess[phase])


def _middle(values: Iterable[int]) -> int:
    """The lower median: of two ranks, the one with less."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2]


def _data_excess(rank: int, run: Run, steps: tuple[int, ...]) -> float:
    """How much longer than the median rank it waited for its batches in some steps."""
    found = input_lateness(run)
    if rank not in found.ranks:
        return 0.0
    return float(found.late_ns[found.ranks.index(rank), np.isin(found.steps, steps)].sum())
