"""Steps that took much longer than the others, and time spent waiting for input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.steps import WARM_UP_STEPS, Steps, steps
from meshscope.run import Run
from meshscope.units import ratio

FEWEST = 8
"""Fewer steps say nothing about what is usual."""

STALL_FRAC = 0.1
_SIGMAS, _LEAST_FRAC = 5.0, 0.2


@dataclass(frozen=True)
class SlowStep:
    """A step ``excess_ns`` beyond the median: by five deviations (of the median, made comparable) and a fifth of it.

    ``data_rank`` waited longest for its batch in it, ``data_ns``; −1 and 0 where no rank says. ``phase`` is ``data``
    where that, beyond what it waits in the median step, is half of the excess or more; else "".
    """

    step: int
    duration_ns: int
    excess_ns: float
    data_rank: int
    data_ns: int
    phase: str


@dataclass(frozen=True)
class InputWait:
    """One rank's waiting for batches over ``steps`` measured steps: ``wait_ns`` is ``frac`` of their time.

    ``stalls`` are the steps in which it was a tenth of the step or more.
    """

    rank: int
    steps: int
    wait_ns: int
    frac: float
    stalls: tuple[int, ...]


def slow_steps(run: Run) -> tuple[SlowStep, ...]:
    """In order; of unprofiled steps past warm-up. Empty with fewer than eight of them."""
    found = steps(run)
    keep = _measured(run, found)
    duration_ns = found.duration_ns[keep].astype(np.float64)
    if len(duration_ns) < FEWEST:
        return ()
    median_ns = float(np.median(duration_ns))
    deviation_ns = 1.4826 * float(np.median(np.abs(duration_ns - median_ns)))
    bar_ns = median_ns + max(_SIGMAS * deviation_ns, _LEAST_FRAC * median_ns)
    slow = found.number[keep][duration_ns > bar_ns].tolist()
    lengths = dict(zip(found.number.tolist(), found.duration_ns.tolist(), strict=True))
    return tuple(_slow(run, step, lengths[step], lengths[step] - median_ns) for step in slow)


def _measured(run: Run, found: Steps) -> npt.NDArray[np.bool_]:
    """Which of the finished steps say how long a step usually is."""
    if not len(found.number):
        return np.zeros(0, dtype=bool)
    compiling = [entry.step for entry in run.compiles if entry.stage == "compile"]
    is_past = found.number >= found.number[0] + WARM_UP_STEPS
    keep: npt.NDArray[np.bool_] = is_past & ~found.is_profiled & ~np.isin(found.number, compiling)
    return keep


def measured_numbers(run: Run) -> npt.NDArray[np.int32]:
    """The steps that say how long a step usually is: unprofiled, past warm-up, finished by all ranks."""
    found = steps(run)
    return found.number[_measured(run, found)]


def _slow(run: Run, step: int, duration_ns: int, excess_ns: float) -> SlowStep:
    table = run.steps
    known = np.flatnonzero((table.step == step) & (table.data_wait_ns >= 0))
    if not len(known):
        return SlowStep(step, duration_ns, excess_ns, -1, 0, "")
    row = known[int(table.data_wait_ns[known].argmax())]
    rank, data_ns = int(table.rank[row]), int(table.data_wait_ns[row])
    usual_ns = float(np.median(table.data_wait_ns[(table.rank == rank) & (table.data_wait_ns >= 0)]))
    return SlowStep(step, duration_ns, excess_ns, rank, data_ns, "data" if data_ns - usual_ns >= excess_ns / 2 else "")


def input_waits(run: Run) -> tuple[InputWait, ...]:
    """By rank; of unprofiled steps past warm-up. Empty where no rank says how long it waits for its batches."""
    table = run.steps
    keep = np.isin(table.step, measured_numbers(run)) & (table.data_wait_ns >= 0)
    rank, step, wait_ns = table.rank[keep], table.step[keep], table.data_wait_ns[keep]
    if not len(rank):
        return ()
    length_ns = table.end_ns[keep] - table.start_ns[keep]
    is_stalled = wait_ns >= np.maximum(STALL_FRAC * length_ns, 1)
    starts = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))  # sorted by rank
    ends = np.append(starts[1:], len(rank))
    total_ns, trained_ns = np.add.reduceat(wait_ns, starts), np.add.reduceat(length_ns, starts)
    stalled = np.add.reduceat(is_stalled.astype(np.int64), starts)
    return tuple(
        InputWait(
            rank=int(rank[start]),
            steps=end - start,
            wait_ns=waited,
            frac=ratio(waited, trained),
            stalls=tuple(step[start:end][is_stalled[start:end]].tolist()) if some else (),
        )
        for start, end, waited, trained, some in zip(
            *(column.tolist() for column in (starts, ends, total_ns, trained_ns, stalled)), strict=True
        )
    )
