"""Memory leak: what a rank holds grows from step to step and never comes back.

By the allocator's count after each step where there is one: growth of a twentieth, and 32 MB. On CPU ranks only the
process's resident set tells. It grows by itself for a while, so there it takes a fifth and 64 MB; and with every
profile that is written, so what it grew while a profiler was at work is left out. Since buffers come and go with each
step, what is left out may be the way down alone: with it the growth has to be as large. Either way the growth has to be
steady: in each of the four quarters of the time past warm-up the median is above that before, and no rise is less than
half of another. A jump, or a level that is neared, is no leak.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.steps import WARM_UP_STEPS
from meshscope.recording.entries import TraceWritten
from meshscope.run import Run
from meshscope.samples import StepTable
from meshscope.units import percent, size

FEWEST = 12
QUARTERS = 4
STEADY_FRAC = 0.5
_LEAST_RESIDENT_BYTES = 64_000_000

_FIX = """losses.append(loss.item())   # a number, not a tensor with its graph
total += loss.detach()       # the same for sums"""
_FIX_JAX = """losses.append(float(loss))   # a number, not an array on the device
step = jax.jit(step, donate_argnums=(0, 1))   # reuse the old state's"""

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Series:
    """What a rank held after some steps (or at moments, where a sensor told), and what growth of it is material.

    ``seen`` is the same with nothing left out.
    """

    rank: int
    value: Floats
    steps: int
    what: str
    least_frac: float
    least_bytes: int
    seen: Floats


def memory_leak(run: Run) -> tuple[Finding, ...]:
    leaking = [(series, growth) for series in _all(run) if (growth := _growth_bytes(series)) > 0]
    if not leaking:
        return ()
    leaking.sort(key=lambda pair: -pair[1])
    ranks = sorted(series.rank for series, _ in leaking)
    return (
        Finding(
            code=FINDING.code,
            title="memory grows with every step",
            ranks=() if len(ranks) == run.experiment.ranks or _is_of_all(leaking[0][0], run) else tuple(ranks),
            evidence=(*(_words(series, growth, run) for series, growth in leaking[:3]), *_more(ranks)),
            advice="Something keeps what each step made: a list of losses with their graphs, a cache, a hook that "
            "stores activations. It ends in an out-of-memory error, however long that takes.",
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
        ),
    )


def _is_of_all(series: _Series, run: Run) -> bool:
    """Whether one process drives all ranks, and this is what it holds."""
    return series.what == "resident" and run.experiment.framework == "jax" and run.experiment.ranks > 1


def _more(ranks: list[int]) -> tuple[str, ...]:
    return (f"it grows on {ranks_words(ranks)}",) if len(ranks) > 1 else ()


def _all(run: Run) -> Iterator[_Series]:
    table = run.steps
    written: dict[int, list[TraceWritten]] = {}
    for entry in run.traces:
        written.setdefault(entry.rank, []).append(entry)
    first = int(table.step.min()) + WARM_UP_STEPS if len(table) else 0
    is_warm = table.step >= first
    told = set(np.unique(table.rank[is_warm & (table.allocated_bytes >= 0)]).tolist())
    for rank in np.unique(table.rank[is_warm]).tolist():
        if rank in told:
            own = table.of(rank)
            held = own.allocated_bytes[(own.step >= first) & (own.allocated_bytes >= 0)].astype(np.float64)
            yield _Series(rank, held, len(held), "allocated", 0.05, 32_000_000, held)
        elif _has_grown(run, rank):
            own = table.of(rank)
            yield _resident(run, rank, own, own.step >= first, _profiled(own, written.get(rank, [])))


def _has_grown(run: Run, rank: int) -> bool:
    """Whether a process held at some time so much more than at another that it may be a leak: most do not."""
    _, value = run.samples.series(f"rank {rank}", "rss_bytes")
    return len(value) >= FEWEST and bool(np.ptp(value) >= _LEAST_RESIDENT_BYTES)


def _resident(run: Run, rank: int, own: StepTable, is_warm: Bools, profiled: _Stretches) -> _Series:
    """What a process holds, as it would be if it had neither grown nor shrunk while a profiler was at work."""
    start_ns, end_ns = int(own.start_ns[is_warm].min()), int(own.end_ns[is_warm].max())
    steps = int(is_warm.sum())
    at_ns, value = run.samples.series(f"rank {rank}", "rss_bytes")
    inside = (at_ns >= start_ns) & (at_ns < end_ns)
    at_ns, value = at_ns[inside], value[inside]
    is_free = ~profiled.overlaps(at_ns[:-1], at_ns[1:])
    grown = np.concatenate(([0.0], np.cumsum(np.diff(value)[is_free])))
    return _Series(
        rank, value[:1] + grown if len(value) else value, steps, "resident", 0.2, _LEAST_RESIDENT_BYTES, value
    )


@dataclass(frozen=True, eq=False)
class _Stretches:
    """When a profiler was at work in a rank, (k,) each: its steps, and what it took to stop after them."""

    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]

    def overlaps(self, start_ns: npt.NDArray[np.int64], end_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of some stretches, shape (n,), have a moment in common with one of these."""
        touch = (self.start_ns[None, :] < end_ns[:, None]) & (self.end_ns[None, :] > start_ns[:, None])
        return np.asarray(touch.any(axis=1), dtype=np.bool_)


def _profiled(own: StepTable, written: list[TraceWritten]) -> _Stretches:
    start_ns, end_ns = own.start_ns[own.is_profiled], own.end_ns[own.is_profiled]
    stop_ns = np.array([entry.t_ns for entry in written], dtype=np.int64)
    held_ns = np.array([entry.stop_ns for entry in written], dtype=np.int64)
    return _Stretches(np.concatenate((start_ns, stop_ns - held_ns)), np.concatenate((end_ns, stop_ns)))


def _quarters(value: Floats) -> Floats:
    return np.array([np.median(part) for part in np.array_split(value, QUARTERS)])


def _growth_bytes(series: _Series) -> float:
    """From the first quarter's median to the last one's; 0 where it is no leak."""
    if len(series.value) < FEWEST:
        return 0.0
    level, seen = _quarters(series.value), _quarters(series.seen)
    grown, rises = float(level[-1] - level[0]), np.diff(level)
    is_steady = bool(rises.min() >= STEADY_FRAC * rises.max())
    is_much = min(grown, float(seen[-1] - seen[0])) >= max(series.least_frac * level[0], series.least_bytes)
    return grown if is_steady and is_much else 0.0


def _words(series: _Series, grown_bytes: float, run: Run) -> str:
    who = "the process of all ranks" if _is_of_all(series, run) else f"rank {series.rank}"
    level = _quarters(series.value)
    each = size(grown_bytes / max(series.steps * (QUARTERS - 1) / QUARTERS, 1))
    levels = ", ".join(size(float(value)) for value in level)
    said = f"{who}: {series.what} memory in the quarters of {series.steps} steps: {levels}; "
    return said + f"{percent(grown_bytes / level[0])} more than in the first, about {each} a step"


FINDING = Rule("memory-leak", memory_leak)
