"""A pipeline's bubble: what each stage of a step waits for the others, beside what equal stages would.

With p stages and m micro-batches a stage of GPipe or 1F1B works m of the m + p − 1 turns that a step takes, so that
(p − 1) / (m + p − 1) of it are the bubble (Huang et al. 2019, GPipe, section 2.3; Narayanan et al. 2021, "Efficient
Large-Scale Language Model Training on GPU Clusters", section 2.2). Interleaved, with v stretches of blocks on a rank,
a turn is 1/v as long, and it is (p − 1) / (v·m + p − 1). The latter paper states both as shares of the time of work:
(p − 1) / m and (p − 1) / (v·m). They are of stages that take equally long, pass on without delay and do nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.in_steps import steps_of
from meshscope.analysis.parts import per_run, per_window
from meshscope.analysis.standing import shares_cores
from meshscope.intervals import Intervals, difference, union
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import ratio

Ints = npt.NDArray[np.int64]

CHUNKS = {"gpipe": 1, "1f1b": 1, "interleaved": 2}
"""Stretches of blocks on each rank, by schedule."""

UNEVEN_FRAC = 0.1
"""Stages are uneven where the longest computes a tenth longer than the mean."""


@dataclass(frozen=True)
class Stage:
    """One rank in the mean of its ``steps`` complete traced steps: ``compute + wait + rest = step``.

    ``wait_ns`` is when it computes nothing and receives, or takes part in a collective: what it waits for others and
    what they take to pass it on. ``rest_ns`` is everything else: its host, its batch, sends that nobody takes yet.
    """

    rank: int
    step_ns: int
    compute_ns: int
    wait_ns: int
    rest_ns: int
    steps: int

    @property
    def wait_frac(self) -> float:
        return ratio(self.wait_ns, self.step_ns)


@dataclass(frozen=True)
class Pipeline:
    """``stages`` (p), ``micro_batches`` (m) and ``chunks`` (v, on each rank) as asked for; ``ranks`` were traced.

    ``wait_frac`` is the mean over ranks, NaN where none has a complete step, beside ``ideal_frac``. The stage that
    computes longest has ``most_ns`` a step, ``excess_frac`` more than the mean, ``mean_ns``.
    """

    schedule: str
    stages: int
    micro_batches: int
    chunks: int
    ideal_frac: float
    ranks: tuple[Stage, ...] = ()
    shares_cores: bool = False

    @property
    def wait_frac(self) -> float:
        return float(np.mean([one.wait_frac for one in self.ranks])) if self.ranks else math.nan

    @property
    def mean_ns(self) -> float:
        return float(np.mean([one.compute_ns for one in self.ranks])) if self.ranks else math.nan

    @property
    def longest(self) -> Stage | None:
        return max(self.ranks, key=lambda one: (one.compute_ns, -one.rank), default=None)

    @property
    def excess_frac(self) -> float:
        longest = self.longest
        return ratio(longest.compute_ns, self.mean_ns) - 1 if longest is not None else math.nan

    @property
    def is_whole(self) -> bool:
        """Whether every stage was traced."""
        return len(self.ranks) == self.stages

    @property
    def is_uneven(self) -> bool:
        return self.is_whole and self.excess_frac >= UNEVEN_FRAC


def is_pipeline(run: Run) -> bool:
    return _asked(run) is not None


def _asked(run: Run) -> tuple[str, int, int] | None:
    """Schedule, stages and micro-batches of a pipeline; None of any other run."""
    asked = run.experiment.options
    schedule, stages, micro_batches = (asked.get(name) for name in ("schedule", "stages", "accumulate"))
    if schedule not in CHUNKS or not isinstance(stages, int) or not isinstance(micro_batches, int):
        return None
    return (str(schedule), stages, micro_batches) if stages > 1 and micro_batches > 0 else None


def ideal_frac(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """The share of a step that is bubble where all stages take equally long."""
    return (stages - 1) / (chunks * micro_batches + stages - 1)


@per_run
def pipeline(run: Run) -> Pipeline | None:
    """None of a run that is no pipeline; without ``ranks`` where no step was traced."""
    asked = _asked(run)
    if asked is None:
        return None
    schedule, stages, micro_batches = asked
    chunks = CHUNKS[schedule]
    waits: dict[int, int] = {}
    for window in run.windows:
        if window.device_kind != "none" and window.steps:
            waits[window.rank] = waits.get(window.rank, 0) + waits_of(window).total_ns
    known = [rank for rank in breakdown(run) if rank.per_step is not None and rank.rank in waits]
    return Pipeline(
        schedule=schedule,
        stages=stages,
        micro_batches=micro_batches,
        chunks=chunks,
        ideal_frac=ideal_frac(stages, micro_batches, chunks),
        ranks=tuple(
            _stage(rank.rank, rank.per_step.span_ns, rank.per_step.compute_ns, waits[rank.rank], len(rank.steps))
            for rank in known
            if rank.per_step is not None
        ),
        shares_cores=shares_cores(run),
    )


def _stage(rank: int, step_ns: int, compute_ns: int, waits_ns: int, count: int) -> Stage:
    wait_ns = round(waits_ns / count)
    return Stage(rank, step_ns, compute_ns, wait_ns, step_ns - compute_ns - wait_ns, count)


def waiting_rows(window: Window) -> Ints:
    """The spans in which a rank waits for others, as rows.

    On CPU a send is no waiting: its span goes on until its caller looks. A GPU can do nothing else in that stream.
    """
    spans = window.spans
    left_out = ("send",) if window.device_kind == "cpu" else ()
    counts = np.array([name not in left_out for name in (*spans.collectives, "")], dtype=bool)
    return np.flatnonzero((spans.kind == Kind.COLLECTIVE) & counts[spans.collective])


@per_window
def waits_of(window: Window) -> Intervals:
    """When a window's rank computes nothing and waits for others, in its complete steps."""
    spans, rows = window.spans, waiting_rows(window)
    in_steps = steps_of(window)
    return difference(union(spans.start_ns[rows], spans.end_ns[rows]), spans.busy(Kind.COMPUTE)) & in_steps


def balanced_ns(found: Pipeline) -> float:
    """How much shorter a step would be if every stage computed for as long as the mean one: a turn less, each turn."""
    longest = found.longest
    if longest is None:
        return math.nan
    turns = found.chunks * found.micro_batches
    return (longest.compute_ns - found.mean_ns) / turns * (turns + found.stages - 1)
