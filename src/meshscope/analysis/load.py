"""How much of the machine others used while a run's steps were measured, and how much nobody used.

Ranks on CPU share their cores with whatever else runs, and a step that waits for a core looks like a slower step.
The host's utilization less what the ranks used is what others took; what is left is what nobody took.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.run import Run

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DISAGREE_CORES = 0.5


@dataclass(frozen=True, eq=False)
class Load:
    """Cores' worth during each of n stretches of time, shape (n,); all NaN where it cannot be told.

    ``idle`` is what nobody used, ``others`` what neither nobody nor the run's ranks did.
    """

    others: Floats
    idle: Floats


def load(run: Run, start_ns: Ints, end_ns: Ints) -> Load:
    """Over stretches [start, end). A reading stands for the time since the one before it."""
    unknown = np.full(len(start_ns), np.nan)
    cores = run.experiment.host_cores or (0 if run.experiment.is_baseline else run.experiment.cores)
    at_ns, busy_frac = run.samples.series("host", "utilization_frac")
    if not cores or len(at_ns) < 2 or not len(start_ns):
        return Load(unknown, unknown)
    ranks = [name for name in run.samples.devices if name.startswith("rank ")]
    own = [_mean(*run.samples.series(name, "cpu_cores"), start_ns, end_ns) for name in ranks]
    busy = _mean(at_ns, busy_frac, start_ns, end_ns) * cores
    if not own:
        return Load(unknown, unknown)
    others = busy - np.sum(own, axis=0)
    if not np.isfinite(others).any():
        return Load(unknown, unknown)
    if np.nanmean(others) < -_DISAGREE_CORES:  # The ranks used more than the host did: they are not of one count.
        return Load(unknown, unknown)
    return Load(np.maximum(others, 0), cores - busy)


def _mean(at_ns: Ints, value: Floats, start_ns: Ints, end_ns: Ints) -> Floats:
    """The mean of a reading over each stretch; NaN where none stands for it."""
    if len(at_ns) < 2:
        return np.full(len(start_ns), np.nan)
    total = np.concatenate(([0.0], np.cumsum(value[1:] * np.diff(at_ns))))
    covered = (start_ns >= at_ns[0]) & (end_ns <= at_ns[-1])
    known: Floats = (np.interp(end_ns, at_ns, total) - np.interp(start_ns, at_ns, total)) / (end_ns - start_ns)
    return np.where(covered, known, np.nan)
