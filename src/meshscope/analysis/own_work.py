"""How much longer than the others a rank is at work of its own, by the journal of all its steps.

Ranks that meet in every step take equally long for it, whoever is late. What differs is what each does before it can
meet the others: waiting for its batch, and computing. On a CPU the latter is the time of its process on its cores, of
which waiting for another rank takes none, and a neighbour on the machine takes nothing away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.noise import least_means
from meshscope.analysis.parts import per_run
from meshscope.analysis.slow_steps import FEWEST, measured_numbers
from meshscope.analysis.standing import device_kind
from meshscope.run import Run
from meshscope.samples import StepTable

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_STEPS_PER_PART, _PARTS = 4, (4, 12)


@dataclass(frozen=True)
class Excess:
    """A rank's own work in a step beyond the mean of the others' (``others_ns``), ``mean_ns`` in the mean of ``steps``.

    Those are unprofiled, past warm-up and finished by all ranks. It is at least ``least_ns`` in 99 of 100 cases,
    whichever rank was picked, and neighbouring steps taken together. ``phase``: ``compute`` or ``data`` (waiting for
    the batch).
    """

    rank: int
    phase: str
    steps: int
    others_ns: float
    mean_ns: float
    least_ns: float


@per_run
def excesses(run: Run) -> tuple[Excess, ...]:
    """By rank, of either phase the one that is longer; empty where ranks or steps are too few, or nothing is told."""
    table = run.steps
    table = table.where(np.isin(table.step, measured_numbers(run)))
    told = {"data": table.data_wait_ns} | ({"compute": table.cpu_ns} if device_kind(run) == "cpu" else {})
    ranks = np.unique(table.rank).tolist()
    by_phase = [
        _excesses(ranks, phase, rows) for phase, value_ns in told.items() if len(rows := _rows(table, value_ns))
    ]
    return tuple(max(each, key=lambda one: one.mean_ns) for each in zip(*by_phase, strict=True))


def _rows(table: StepTable, value_ns: Ints) -> Floats:
    """What each rank (rows) tells of each step (columns); empty where any does not tell, or they are too few."""
    ranks = len(np.unique(table.rank))
    steps = len(np.unique(table.step))
    if ranks < 2 or steps < FEWEST or len(table) != ranks * steps or (value_ns < 0).any():
        return np.empty((0, 0))
    return value_ns.astype(np.float64).reshape(ranks, steps)  # the table is sorted by rank and step


def _excesses(ranks: list[int], phase: str, rows: Floats) -> list[Excess]:
    count, steps = rows.shape
    others_ns = (rows.sum(axis=0) - rows) / (count - 1)
    beyond_ns = rows - others_ns
    parts = min(max(steps // _STEPS_PER_PART, _PARTS[0]), _PARTS[1])
    least_ns = least_means(beyond_ns, parts=parts, tries=count)
    each = zip(
        ranks, *(column.tolist() for column in (others_ns.mean(axis=1), beyond_ns.mean(axis=1), least_ns)), strict=True
    )
    return [Excess(rank, phase, steps, others, mean, least) for rank, others, mean, least in each]
