"""What a late rank spends its time in while the others wait for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from meshscope.analysis.lateness import input_lateness
from meshscope.analysis.parts import per_pair
from meshscope.analysis.rounds import rounds
from meshscope.analysis.waiting import Waiting, WindowWaits
from meshscope.intervals import Intervals
from meshscope.run import Run
from meshscope.spans import Kind, Window

PHASES = ("compute", "copy", "communication", "idle")

Spent = dict[int, dict[str, int]]


def spent(found: Waiting, run: Run) -> Spent:
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
            for name, value in _window_spent(window, (waits, start_ns + ahead_ns, end_ns + ahead_ns)).items():
                total[window.rank][name] += value
    return dict(total)


def _common_ns(time_ns: int, waits: WindowWaits) -> int:
    return int(waits.clock.common(np.array([time_ns], dtype=np.int64))[0])


@per_pair
def _window_spent(window: Window, during: tuple[WindowWaits, int, int]) -> dict[str, int]:
    waits, start_ns, end_ns = during
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


def phase(rank: int, parts: Spent, run: Run, steps: tuple[int, ...]) -> tuple[str, float]:
    """What the rank has most more of than the median rank, and how much; ``data`` goes by the journal of ``steps``."""
    if rank not in parts or len(parts) < 2:
        return "", 0.0
    middle = {name: _middle(one[name] for one in parts.values()) for name in PHASES}
    excess = {name: float(parts[rank][name] - middle[name]) for name in PHASES}
    most = max(excess, key=lambda name: excess[name])
    if excess[most] <= 0:
        return "", 0.0
    data_ns = _data_excess(rank, run, steps)
    return ("data", data_ns) if data_ns >= 0.5 * excess[most] else (most, excess[most])


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
