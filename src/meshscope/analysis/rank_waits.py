"""Rank by rank: how late it comes in each step, how long it waits and transfers, and how often it comes last."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.lateness import LATE_FRAC, NO_STEP, Lateness, collective_lateness
from meshscope.analysis.pipeline import pipeline
from meshscope.analysis.pipeline_words import staged_words
from meshscope.analysis.stragglers import stragglers
from meshscope.analysis.waiting import RankWait, Waiting, WindowWaits, held_ns, waiting
from meshscope.analysis.waiting_words import lateness_words
from meshscope.run import Run
from meshscope.units import counted

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RankRow:
    """One rank. ``late_frac`` (steps,) is how late it came in each step, as a share of it; NaN where unknown.

    ``transfer_ns`` and ``wait_ns`` are of a step in the mean (of all that was traced where no step is marked) and add
    up over its calls, without those that lie in no step; it came last ``last`` times of ``calls``, wherever they lie.
    ``held_ns`` is how long it holds up another rank, of a step likewise; collectives that wait at once count once.
    """

    rank: int
    late_frac: Floats
    transfer_ns: float
    wait_ns: float
    last: int
    calls: int
    held_ns: float


@dataclass(frozen=True, eq=False)
class RankWaits:
    """``rows`` in the order of ranks; empty where ``why`` says that nothing can be said.

    ``steps`` are those of the columns of ``late_frac``, one of them −1 where no step is marked; ``step_ns`` is how long
    the median one took, NaN where unknown. ``residual_ns`` is how far apart the aligned ends of one collective are at
    most; None without one. ``words`` are the pattern in a sentence, ``is_bad`` tells whether it names a rank.
    """

    rows: tuple[RankRow, ...] = ()
    steps: tuple[int, ...] = ()
    step_ns: float = math.nan
    matched: int = 0
    spans: int = 0
    residual_ns: int | None = None
    words: str = ""
    is_bad: bool = False
    why: str = ""

    @property
    def is_stepped(self) -> bool:
        return bool(self.steps) and self.steps != (NO_STEP,)


def rank_waits(run: Run) -> RankWaits:
    """Nothing but ``why`` for one rank, or where no collective has a counterpart on all of its ranks."""
    found = waiting(run)
    late = collective_lateness(run, found)
    if not found.matched or len(found.ranks) < 2 or not late.is_known:
        return RankWaits(matched=found.matched, spans=found.spans, why=_why(run, found))
    named, staged, sums = stragglers(run), pipeline(run), _sums(found, late)
    of = max(len(set(late.steps) - {NO_STEP}), 1)
    return RankWaits(
        rows=tuple(_row(rank, sums[rank.rank], late, of) for rank in found.ranks),
        steps=late.steps,
        step_ns=math.nan if np.isnan(late.step_ns).all() else float(np.nanmedian(late.step_ns)),
        matched=found.matched,
        spans=found.spans,
        residual_ns=found.residual_ns,
        words=lateness_words(late, named, run) if staged is None else staged_words(staged),
        is_bad=bool(named),
    )


def counts(waits: WindowWaits, late: Lateness) -> Bools:
    """Which spans count for the mean step, shape (k,): those of a step, or all where no step is marked."""
    return waits.step != NO_STEP if set(late.steps) - {NO_STEP} else np.ones(len(waits.step), dtype=bool)


@dataclass(frozen=True)
class _Sums:
    """Of one rank, over the calls that count: what they transfer and wait, and what others wait for it."""

    transfer_ns: int
    wait_ns: int
    held_ns: int


def _sums(found: Waiting, late: Lateness) -> dict[int, _Sums]:
    """By rank."""
    transfer_ns, wait_ns, held = Counter[int](), Counter[int](), Counter[int]()
    for window, waits in found.windows.items():
        keep = counts(waits, late)
        held.update(held_ns(waits, keep))
        waited_ns = int(waits.wait_ns[keep].sum())
        wait_ns[window.rank] += waited_ns
        transfer_ns[window.rank] += int((waits.end_ns - waits.start_ns)[keep].sum()) - waited_ns
    return {one.rank: _Sums(transfer_ns[one.rank], wait_ns[one.rank], held[one.rank]) for one in found.ranks}


def _row(found: RankWait, sums: _Sums, late: Lateness, of: int) -> RankRow:
    late_ns = late.late_ns[late.ranks.index(found.rank)]
    return RankRow(
        rank=found.rank,
        late_frac=np.divide(late_ns, late.step_ns, out=np.full(len(late_ns), math.nan), where=late.step_ns > 0),
        transfer_ns=sums.transfer_ns / of,
        wait_ns=sums.wait_ns / of,
        last=found.last,
        calls=found.calls,
        held_ns=sums.held_ns / (len(late.ranks) - 1) / of,
    )


def _why(run: Run, found: Waiting) -> str:
    """Why nothing can be said, where something was traced."""
    ranks = len({window.rank for window in run.windows if window.device_kind != "none"})
    if not found.spans:
        return "the traces hold no collective: nothing is exchanged between ranks, or nothing of it was recorded"
    if ranks < 2 and not found.unmatched:
        return "one rank was traced, and it waits for nobody"
    if found.unmatched:
        reason, count = found.unmatched[0]
        return f"{count} of {counted(found.spans, 'collective span')}: {reason}"
    return "no collective was matched over ranks"


def worst_first(found: RankWaits) -> tuple[RankRow, ...]:
    """The latest first, by the sum over steps; of those that are equally late, the ones that hold up others longer."""
    return tuple(sorted(found.rows, key=lambda row: (-float(np.nansum(row.late_frac)), -row.held_ns, row.rank)))


def named_late(found: RankWaits) -> int:
    """How many ranks are late by a fiftieth of a step in the mean: those that a picture shows one by one."""
    if not found.rows:
        return 0
    late = np.stack([row.late_frac for row in found.rows])
    known = np.maximum((~np.isnan(late)).sum(axis=1), 1)
    return int((np.nansum(late, axis=1) / known >= LATE_FRAC).sum())


@dataclass(frozen=True, eq=False)
class Band:
    """``rows``, in the order of their ranks, as one: ``late_frac`` (steps,) is of the latest of them in each step."""

    rows: tuple[RankRow, ...]
    late_frac: Floats

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(row.rank for row in self.rows)


def bands(rows: Sequence[RankRow], most: int) -> tuple[Band, ...]:
    """Rows in the order of ranks, folded into at most ``most``: each of equally many neighbours, a power of two."""
    size = 1
    while math.ceil(len(rows) / size) > max(most, 1):
        size *= 2
    return tuple(_band(rows[at : at + size]) for at in range(0, len(rows), size))


def _band(rows: Sequence[RankRow]) -> Band:
    late = np.stack([row.late_frac for row in rows])
    latest = np.where(np.isnan(late), -1.0, late).max(axis=0)
    return Band(tuple(rows), np.where(latest < 0, math.nan, latest))


def per_cell(steps: int, cells: int) -> int:
    """How many neighbouring steps share a cell of so many: a power of two, so that a growing series keeps its shape."""
    size = 1
    while cells > 0 and math.ceil(steps / size) > cells:
        size *= 2
    return size


def binned(late_frac: Floats, cells: int) -> Floats:
    """At most ``cells`` values: the largest of :func:`per_cell` steps, NaN where none of them is known."""
    if not len(late_frac) or cells <= 0:
        return np.empty(0)
    filled = np.where(np.isnan(late_frac), -1.0, late_frac)
    most: Floats = np.maximum.reduceat(filled, np.arange(0, len(late_frac), per_cell(len(late_frac), cells)))
    return np.where(most < 0, math.nan, most)
