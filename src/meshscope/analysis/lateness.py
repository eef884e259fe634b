"""Who comes late, step by step: a matrix that tells a bad device, a bad node and roaming slow input apart.

A bad device is one dark row, a bad node the rows of its ranks, slow input cells that roam.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.analysis.device_steps import device_step_ns
from meshscope.analysis.parts import per_run
from meshscope.analysis.pipeline import is_pipeline
from meshscope.analysis.sidings import apart
from meshscope.analysis.waiting import Waiting, WindowWaits, waiting
from meshscope.run import Run

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.integer[Any]]

NO_STEP = -1
"""The one column of a matrix whose collectives lie in no known step."""

LATE_FRAC = 0.02
"""A rank is late in a step when it is so by this share of it."""

FEWEST_STEPS = 3
_OFTEN_FRAC = 2 / 3


@dataclass(frozen=True, eq=False)
class Lateness:
    """``late_ns`` (ranks, steps), NaN where unknown; both empty where nothing is known.

    ``source`` says of what: ``collectives`` (for how long a rank had not come to a collective of the step to which the
    median rank had, see :func:`missing_ns`; in a pipeline nobody is late, since its stages come after one another by
    design), ``steps``
    (how much later it ended the step, by the journal) or ``input`` (how much longer it waited for its batch).
    ``step_ns`` (steps,) is how long the step took, NaN where unknown, and ``hosts`` names the machine of each rank, ""
    where untold.
    """

    source: str
    ranks: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    late_ns: Floats = field(default_factory=lambda: np.empty((0, 0)))
    step_ns: Floats = field(default_factory=lambda: np.empty(0))
    hosts: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        return bool(self.ranks) and bool(self.steps)


@dataclass(frozen=True)
class Pattern:
    """What the matrix shows. ``kind``: ``even``, ``rank``, ``node``, ``roaming`` or ``unknown``.

    ``steps`` counts those in which some rank is later than the median rank by a fiftieth of the step or more, of ``of``
    steps; fewer than three of them make no pattern. ``ranks`` are those that come late (for ``rank`` in two thirds of
    such steps each), ``since`` is the first step in which one of them does (−1: none known), ``host`` the node's name.
    """

    kind: str
    ranks: tuple[int, ...] = ()
    host: str = ""
    steps: int = 0
    of: int = 0
    since: int = NO_STEP


@per_run
def lateness(run: Run) -> Lateness:
    """By the collectives that were matched over ranks."""
    return _of_collectives(run, waiting(run))


def collective_lateness(run: Run, found: Waiting) -> Lateness:
    """The same from an answer that is there already."""
    return lateness(run) if found is waiting(run) else _of_collectives(run, found)


def _of_collectives(run: Run, found: Waiting) -> Lateness:
    told = [(window.rank, waits) for window, waits in found.windows.items() if len(waits.row)]
    if not told:
        return Lateness("collectives")
    each = [missing_ns(waits) for _, waits in told]
    rank = np.repeat([one for one, _ in told], [len(step) for step, _ in each])
    step = np.concatenate([step for step, _ in each])
    late_ns = np.concatenate([missing for _, missing in each])
    if is_pipeline(run):
        late_ns = np.zeros_like(late_ns)
    is_stepped = step != NO_STEP
    if is_stepped.any():
        rank, step, late_ns = rank[is_stepped], step[is_stepped], late_ns[is_stepped]
    ranks, row = np.unique(rank, return_inverse=True)
    steps, column = np.unique(step, return_inverse=True)
    cell, size = row.reshape(-1) * len(steps) + column.reshape(-1), len(ranks) * len(steps)
    sums, counts = np.zeros(size, dtype=np.int64), np.bincount(cell, minlength=size)
    np.add.at(sums, cell, late_ns)
    matrix = np.where(counts > 0, sums, np.nan).reshape(len(ranks), len(steps))
    return _matrix("collectives", matrix, ranks, steps, run)


def missing_ns(waits: WindowWaits) -> tuple[Ints, Ints]:
    """The steps of a window's matched collectives, and for how long its rank was late in each.

    That is the time in which some collective of the step had the median rank but not yet this one. A delay that holds
    up several collectives at once counts once, however many there are; delays that follow one another add up.
    """
    step, number = np.unique(waits.step, return_inverse=True)
    missing = apart(number.reshape(-1), waits.start_ns - waits.late_ns, waits.start_ns)
    return step, missing.total_ns(len(step))


def step_lateness(run: Run) -> Lateness:
    """By the journal: how much later than the median rank each rank ended its steps. Ranks share one clock there.

    Where ranks wait for one another within the step, all of them end it late together: only what comes after the last
    collective of a step shows.
    """
    return _by_step("steps", run, run.steps.end_ns, np.ones(len(run.steps), dtype=bool))


@per_run
def input_lateness(run: Run) -> Lateness:
    """By the journal: how much longer than the median rank each rank waited for its batch."""
    return _by_step("input", run, run.steps.data_wait_ns, run.steps.data_wait_ns >= 0)


def _by_step(source: str, run: Run, value_ns: Ints, is_told: Bools) -> Lateness:
    """Of the steps that all ranks tell of, of those that tell of any."""
    rank, step, value_ns = run.steps.rank[is_told], run.steps.step[is_told], value_ns[is_told]
    ranks = np.unique(rank)
    numbers, counts = np.unique(step, return_counts=True)
    whole = numbers[counts == len(ranks)]
    if len(ranks) < 2 or not len(whole):
        return Lateness(source)
    cells = value_ns[np.isin(step, whole)].reshape(len(ranks), len(whole))  # sorted by rank and step
    middle = np.sort(cells, axis=0)[(len(ranks) - 1) // 2]
    return _matrix(source, np.maximum(cells - middle, 0).astype(np.float64), ranks, whole, run)


def _matrix(source: str, late_ns: Floats, ranks: Numbers, steps: Numbers, run: Run) -> Lateness:
    lengths, hosts = _lengths(run), _hosts(run)
    return Lateness(
        source=source,
        ranks=tuple(ranks.tolist()),
        steps=tuple(steps.tolist()),
        late_ns=late_ns,
        step_ns=np.array([lengths.get(step, np.nan) for step in steps.tolist()]),
        hosts=tuple(hosts.get(rank, "") for rank in ranks.tolist()),
    )


@per_run
def _lengths(run: Run) -> dict[int, float]:
    """How long each step took: the median over ranks, by the traces where they mark it, else by the journal.

    What lies in no step belongs to the whole windows.
    """
    table, windows = run.steps, run.windows
    found = _medians(table.step, table.end_ns - table.start_ns)
    if not windows:
        return found
    steps = np.concatenate([np.array(window.steps, dtype=np.int64) for window in windows])
    length_ns = np.concatenate([np.diff(device_step_ns(window))[:, 0] for window in windows])
    whole_ns = float(np.median([window.end_ns - window.start_ns for window in windows]))
    return found | {NO_STEP: whole_ns} | _medians(steps, length_ns)


def _medians(number: Numbers, value: Ints) -> dict[int, float]:
    """By number the median of its values."""
    if not len(number):
        return {}
    order = np.lexsort((value, number))
    number, value = number[order], value[order]
    known, first, count = np.unique(number, return_index=True, return_counts=True)
    medians = (value[first + (count - 1) // 2] + value[first + count // 2]) / 2
    return dict(zip(known.tolist(), medians.tolist(), strict=True))


def _hosts(run: Run) -> dict[int, str]:
    return {window.rank: window.host for window in run.windows if window.host}


def pattern(found: Lateness) -> Pattern:
    """A bad device, a bad node, or lateness that roams.

    A step is even when no rank is later than the median rank by a fiftieth of it.
    """
    if not found.is_known or np.isnan(found.step_ns).all():
        return Pattern("unknown")
    late_ns = _beyond_median(np.nan_to_num(found.late_ns))
    bar = LATE_FRAC * np.where(np.isnan(found.step_ns), np.nanmedian(found.step_ns), found.step_ns)
    material = np.flatnonzero(late_ns.max(axis=0) >= bar)
    steps, of = len(material), len(found.steps)
    if not steps:
        return Pattern("even", of=of)
    if steps < FEWEST_STEPS:
        return Pattern("unknown", steps=steps, of=of)
    node = _node(found, late_ns[:, material])
    if node:
        members = tuple(rank for rank, host in zip(found.ranks, found.hosts, strict=True) if host == node)
        return Pattern("node", members, node, steps, of, found.steps[int(material[0])])
    is_late = late_ns[:, material] >= np.maximum(0.5 * late_ns[:, material].max(axis=0), bar[material])
    often = is_late.mean(axis=1) >= _OFTEN_FRAC
    chosen = often if often.any() else is_late.any(axis=1)
    first = int(material[is_late[chosen].any(axis=0).argmax()])
    members = tuple(rank for rank, holds in zip(found.ranks, chosen.tolist(), strict=True) if holds)
    return Pattern("rank" if often.any() else "roaming", members, "", steps, of, found.steps[first])


def _beyond_median(late_ns: Floats) -> Floats:
    """Each step without what the median rank is late: ranks that take turns at being late are even."""
    middle = np.sort(late_ns, axis=0)[(len(late_ns) - 1) // 2]
    beyond: Floats = np.maximum(late_ns - middle, 0)
    return beyond


def _node(found: Lateness, late_ns: Floats) -> str:
    """The machine whose ranks are late together while the others' are not; "" where there is none.

    Every rank of it is late by at least half of the most, and no other by a quarter.
    """
    hosts = sorted(set(found.hosts) - {""})
    if len(hosts) < 2 or "" in found.hosts:
        return ""
    mean = late_ns.mean(axis=1)
    for host in hosts:
        inside = np.array([name == host for name in found.hosts])
        if inside.sum() > 1 and mean[inside].min() >= 0.5 * mean.max() and mean[~inside].max() < 0.25 * mean.max():
            return host
    return ""
