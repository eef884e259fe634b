"""Step time and throughput, from steps that no profiler touched; and what the profiler costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.analysis.parts import per_run, per_table
from meshscope.recording.entries import Compiled
from meshscope.run import Run
from meshscope.samples import Floats, StepTable
from meshscope.units import NS_PER_S, ratio

WARM_UP_STEPS = 2
NO_TOKENS = "its steps count samples, not tokens"

_Each = Callable[[np.ufunc, Callable[[Any], npt.NDArray[Any]]], npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Steps:
    """A step of the run lasts from the end of the step before it, on the last rank to get there, to its own end there.

    Ranks drift: a fast one begins step k + 1 while a slow one ends step k, so steps from the earliest start to the
    latest end would overlap and count time twice. Where nothing of the step before is in the way (the first step, a
    pause in which a profiler stopped) it begins with its earliest rank; steps never overlap, so they add up to wall
    time.

    ``measured`` counts the steps behind median, p95 and throughput: past warm-up (the first two, and any that compiled)
    and not profiled; one that a rank tells twice is as it told it last. Floats are NaN while there are none.
    ``*_spread`` is half the interquartile range. ``profiled`` and ``profiled_median_ns`` are of warm steps that a
    profiler touched (``is_profiled``); ``profiler_cost_frac`` is the time profiling added (profiled steps against the
    median, and stopping) as a share of the run's training time, ``profiled_slowdown_frac`` how much longer a profiled
    step is.
    ``loss_lost_step`` is the first step from which on a rank's loss is NaN or infinite, −1 while it is finite.
    ``number``/``duration_ns``/``is_profiled`` are the series to draw, one row per finished step.
    """

    count: int = 0
    planned: int = 0
    measured: int = 0
    median_ns: float = math.nan
    p95_ns: float = math.nan
    spread_ns: float = math.nan
    first_ns: float = math.nan
    compile_ns: float = math.nan
    compilations: int = 0
    recompilations: int = 0
    samples_per_s: float = math.nan
    samples_per_s_spread: float = math.nan
    tokens_per_s: float = math.nan
    data_wait_frac: float = math.nan
    loss_last: float = math.nan
    loss_lost_step: int = -1
    profiled: int = 0
    profiled_median_ns: float = math.nan
    profiled_slowdown_frac: float = math.nan
    profiler_cost_frac: float = math.nan
    number: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    duration_ns: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    is_profiled: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    loss: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, eq=False)
class Measured:
    """The steps behind median and throughput, in order, each of shape (m,); see :class:`Steps`.

    ``start_ns`` to ``end_ns`` is the step's own share of the wall time. ``samples`` and ``tokens`` are NaN where
    untold, as is ``data_wait_frac`` (the mean over ranks of the share of a step that it waited for its batch), and
    ``data_wait_ns`` (of the rank that waited longest: the others wait for it) −1.
    """

    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    samples: Floats
    data_wait_ns: npt.NDArray[np.int64]
    number: npt.NDArray[np.int32]
    tokens: Floats
    data_wait_frac: Floats

    @property
    def duration_ns(self) -> npt.NDArray[np.int64]:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, eq=False)
class _Series:
    """Finished steps of the run, shape (k,): of all ranks that report, by number."""

    number: npt.NDArray[np.int32]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    samples: Floats
    tokens: Floats
    loss: Floats
    wait_frac: Floats
    data_wait_ns: npt.NDArray[np.int64]
    is_profiled: npt.NDArray[np.bool_]

    @property
    def begin_ns(self) -> npt.NDArray[np.int64]:
        """Where each step's own share of the wall time begins; see :class:`Steps`."""
        begin_ns = self.start_ns.copy()
        follows = np.diff(self.number) == 1
        begin_ns[1:][follows] = np.maximum(begin_ns[1:], self.end_ns[:-1])[follows]
        return begin_ns

    @property
    def duration_ns(self) -> npt.NDArray[np.int64]:
        return self.end_ns - self.begin_ns


@per_run
def steps(run: Run) -> Steps:
    """All zero and NaN before the first step."""
    series = _series(run.steps)
    compiles = _compiles(run.compiles, first_step=int(series.number[0]) if len(series.number) else 0)
    if not len(series.number):
        return Steps(planned=run.experiment.planned_steps, **compiles)
    is_warm = _is_warm(series.number, run)
    duration_ns = series.duration_ns.astype(np.float64)
    measured = _is_measured(series, is_warm)
    median_ns = _median(duration_ns[measured])
    return Steps(
        count=len(series.number),
        planned=run.experiment.planned_steps,
        measured=int(measured.sum()),
        median_ns=median_ns,
        p95_ns=float(np.percentile(duration_ns[measured], 95)) if measured.any() else math.nan,
        spread_ns=math.nan if run.is_simulated else _spread(duration_ns[measured]),
        first_ns=float(duration_ns[0]) if series.number[0] == 0 else math.nan,
        samples_per_s=_median(series.samples[measured] / duration_ns[measured] * NS_PER_S),
        samples_per_s_spread=math.nan
        if run.is_simulated
        else _spread(series.samples[measured] / duration_ns[measured] * NS_PER_S),
        tokens_per_s=_median(series.tokens[measured] / duration_ns[measured] * NS_PER_S),
        data_wait_frac=_mean(series.wait_frac[measured]),
        loss_last=float(series.loss[-1]),
        loss_lost_step=min((lost.step for lost in run.lost_losses), default=-1),
        **_profiling(run, series, is_warm, median_ns),
        **compiles,
        number=series.number,
        duration_ns=series.duration_ns,
        is_profiled=series.is_profiled,
        loss=series.loss,
    )


def measured_steps(run: Run) -> Measured:
    """The steps that :func:`steps` takes its medians of; empty before there are any."""
    series = _series(run.steps)
    if not len(series.number):
        return _chosen(series, np.empty(0, dtype=np.bool_))
    return _chosen(series, _is_measured(series, _is_warm(series.number, run)))


def profiled_steps(run: Run) -> Measured:
    """The warm steps that a profiler touched."""
    series = _series(run.steps)
    if not len(series.number):
        return _chosen(series, np.empty(0, dtype=np.bool_))
    return _chosen(series, series.is_profiled & _is_warm(series.number, run))


def finished_steps(run: Run) -> Measured:
    """Every step that all ranks have finished, from the first to the newest."""
    series = _series(run.steps)
    return _chosen(series, np.ones(len(series.number), dtype=np.bool_))


def _chosen(series: _Series, keep: npt.NDArray[np.bool_]) -> Measured:
    return Measured(
        start_ns=series.begin_ns[keep],
        end_ns=series.end_ns[keep],
        samples=series.samples[keep],
        data_wait_ns=series.data_wait_ns[keep],
        number=series.number[keep],
        tokens=series.tokens[keep],
        data_wait_frac=series.wait_frac[keep],
    )


def _is_measured(series: _Series, is_warm: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Warm, not profiled, and of some length: a step without one has no rate."""
    return is_warm & ~series.is_profiled & (series.duration_ns > 0)


@per_table
def _series(table: StepTable) -> _Series:
    """A step is finished when every rank that reports at all has done it, however often one of them tells it."""
    table = _told_once(table)
    alike = _alike(table) if len(table) > _MANY else None
    if alike is not None:
        return _summed_by_rank(table, *alike)
    ranks = len(table) and 1 + int(np.count_nonzero(np.diff(table.rank)))  # sorted by rank
    order = np.argsort(table.step, kind="stable")
    step = table.step[order]
    starts = np.flatnonzero(np.append(True, step[1:] != step[:-1])) if len(step) else np.empty(0, dtype=np.int64)
    count = np.diff(np.append(starts, len(step)))
    done = count == ranks

    def each(reduce: np.ufunc, column: Any) -> npt.NDArray[Any]:
        values = column(order)
        return np.asarray(reduce.reduceat(values, starts)[done] if len(starts) else values)

    return _reduced(table, each, step[starts].astype(np.int32)[done], ranks)


def _told_once(table: StepTable) -> StepTable:
    """Without the earlier tellings of a step that a rank tells again, as one does that was started anew."""
    is_told_again = (table.step[1:] == table.step[:-1]) & (table.rank[1:] == table.rank[:-1])
    return table.where(np.append(~is_told_again, True)) if is_told_again.any() else table


_MANY = 50_000
"""With more rows than this a sort of all of them is felt."""


def _alike(table: StepTable) -> tuple[npt.NDArray[np.int64], int] | None:
    """Where each rank begins, and how many steps all have, where these are the same ones; None where they are not.

    Ranks drift by a step or two, and what not all have done is no finished step.
    """
    begun = np.flatnonzero(np.append(True, table.rank[1:] != table.rank[:-1]))
    ends = np.append(begun[1:], len(table))
    count = int((ends - begun).min())
    first = table.step[:count]
    is_alike = all(bool((table.step[at : at + count] == first).all()) for at in begun.tolist())
    return (begun, count) if is_alike else None


def _summed_by_rank(table: StepTable, begun: npt.NDArray[np.int64], count: int) -> _Series:
    """Rank by rank, each a stretch of every column: nothing is sorted, and nothing of all rows is made."""

    def each(reduce: np.ufunc, column: Any) -> npt.NDArray[Any]:
        found = column(slice(0, count)).copy()
        for at in begun[1:].tolist():
            reduce(found, column(slice(at, at + count)), out=found)
        return np.asarray(found)

    return _reduced(table, each, table.step[:count].astype(np.int32), len(begun))


def _reduced(table: StepTable, each: _Each, number: npt.NDArray[np.int32], ranks: int) -> _Series:
    """``each`` reduces a column, given by what it holds in some rows, to finished steps."""

    def wait_frac(rows: Any) -> Floats:
        wait_ns = np.where(table.data_wait_ns[rows] >= 0, table.data_wait_ns[rows], math.nan)
        lasts_ns = (table.end_ns[rows] - table.start_ns[rows]).astype(np.float64)
        frac: Floats = wait_ns / np.maximum(lasts_ns, 1)
        return frac

    return _Series(
        number=number,
        start_ns=each(np.minimum, lambda rows: table.start_ns[rows]),
        end_ns=each(np.maximum, lambda rows: table.end_ns[rows]),
        samples=each(np.add, lambda rows: _known(table.samples[rows])),
        tokens=each(np.add, lambda rows: _known(table.tokens[rows])),
        loss=_mean_of(tells_loss(table), table.loss, each),
        wait_frac=each(np.add, wait_frac) / ranks,
        data_wait_ns=each(np.maximum, lambda rows: table.data_wait_ns[rows]),
        is_profiled=each(np.logical_or, lambda rows: table.is_profiled[rows]),
    )


def tells_loss(table: StepTable) -> npt.NDArray[np.bool_]:
    """The rows, shape (n,), of ranks that tell a loss at all: stages of a pipeline before the last compute none.

    A rank that tells one in some step and none in another has lost it: there the mean is not known.
    """
    return of_ranks_with(table, np.isfinite(table.loss))


def of_ranks_with(table: StepTable, is_so: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The rows, shape (n,), of ranks of which ``is_so`` holds for a row at least."""
    if is_so.all():
        return is_so
    starts = np.flatnonzero(np.append(True, np.diff(table.rank) != 0))  # sorted by rank
    found: npt.NDArray[np.bool_] = np.repeat(
        np.logical_or.reduceat(is_so, starts), np.diff(np.append(starts, len(is_so)))
    )
    return found


def _mean_of(mine: npt.NDArray[np.bool_], values: Floats, each: _Each) -> Floats:
    """By step the mean of the rows that are ``mine``, NaN where none is."""
    count = each(np.add, lambda rows: mine[rows].astype(np.int64))
    total = each(np.add, lambda rows: np.where(mine[rows], values[rows], 0.0))
    means: Floats = np.divide(total, count, out=np.full(len(total), math.nan), where=count > 0)
    return means


def _known(counts: npt.NDArray[np.int64]) -> Floats:
    return np.where(counts >= 0, counts, math.nan)


def _is_warm(number: npt.NDArray[np.int32], run: Run) -> npt.NDArray[np.bool_]:
    """Past the first two steps, and no compilation under way. A simulated run has its one step, and no warm-up."""
    if run.is_simulated:
        return np.ones(len(number), dtype=np.bool_)
    compiling = [entry.step for entry in run.compiles if entry.stage == "compile"]
    is_past: npt.NDArray[np.bool_] = number >= number[0] + WARM_UP_STEPS
    return is_past & ~np.isin(number, compiling)


def _compiles(compiles: tuple[Compiled, ...], first_step: int) -> dict[str, Any]:
    """Counts and the time of first compilation, of the rank that has most: ranks compile at the same time."""
    by_rank: dict[int, list[Compiled]] = {}
    for entry in compiles:
        by_rank.setdefault(entry.rank, []).append(entry)
    ranks = by_rank.values()
    return {
        "compile_ns": max((_total_ns(mine, first_step) for mine in ranks), default=math.nan),
        "compilations": max((_count(mine) for mine in ranks), default=0),
        "recompilations": max((_count(mine, only_again=True) for mine in ranks), default=0),
    }


def _total_ns(mine: list[Compiled], first_step: int) -> float:
    """Tracing, lowering and compiling of everything that was compiled by the end of the first step."""
    first = [entry.duration_ns for entry in mine if entry.step <= first_step and not entry.is_recompilation]
    return float(sum(first))


def _count(mine: list[Compiled], *, only_again: bool = False) -> int:
    return sum(entry.stage == "compile" and (entry.is_recompilation or not only_again) for entry in mine)


def _profiling(run: Run, series: _Series, is_warm: npt.NDArray[np.bool_], median_ns: float) -> dict[str, Any]:
    """What profiling cost: its steps beyond a usual one, and the time in which the ranks were held."""
    profiled = series.duration_ns[series.is_profiled & is_warm].astype(np.float64)
    profiled_ns = _median(profiled)
    held: dict[int, int] = {}
    for entry in run.traces:
        held[entry.first_step] = max(held.get(entry.first_step, 0), entry.start_cost_ns + entry.stop_ns)
    training_ns = int(series.end_ns.max() - series.start_ns.min())
    added_ns = max(0.0, float((profiled - median_ns).sum())) + sum(held.values())
    is_known = not math.isnan(median_ns) and training_ns > 0 and not run.is_simulated
    return {
        "profiled": len(profiled),
        "profiled_median_ns": profiled_ns,
        "profiled_slowdown_frac": ratio(profiled_ns, median_ns) - 1,
        "profiler_cost_frac": added_ns / training_ns if is_known else math.nan,
    }


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else math.nan


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


def _spread(values: Floats) -> float:
    """Half the interquartile range."""
    if not len(values):
        return math.nan
    low, high = np.percentile(values, (25, 75))
    return float(high - low) / 2
