"""Waiting told apart from transfer: a collective moves data once its last rank has come; until then the others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from meshscope.analysis.calls import SYNCHRONIZING
from meshscope.analysis.clocks import Clock
from meshscope.analysis.matching import Matched, Matches, clock_of, last_to_come, matches
from meshscope.analysis.parts import per_round, per_run
from meshscope.analysis.passing import PASSES, Passed, passing
from meshscope.analysis.rounds import Round, rounds
from meshscope.analysis.sidings import apart
from meshscope.intervals import Intervals, union
from meshscope.run import Run
from meshscope.spans import Kind, Window

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

CLOCK = Clock()
ONE_SIDED = "a broadcast, reduce, gather, scatter or permute does not hold back every rank until all have come"


@dataclass(frozen=True, eq=False)
class WindowWaits:
    """k matched spans of one window as columns of shape (k,), by ``row`` of the window's spans.

    ``wait_ns`` is from the span's start until ``last_rank`` came, at most the whole span; the rest is transfer.
    ``late_ns`` is how much later the rank itself came than the median rank (the earlier of two), 0 when it did not.
    ``ranks`` is how many took part. Waiting is charged to the rank that came last. Nobody did (``last_rank`` −1) where
    a rank is alone, or where all came together, as far as their clocks tell. ``clock`` is the window's own.
    """

    row: Ints
    start_ns: Ints
    end_ns: Ints
    wait_ns: Ints
    late_ns: Ints
    last_rank: Small
    ranks: Small
    step: Ints
    clock: Clock = CLOCK

    @cached_property
    def charged(self) -> dict[int, int]:
        """What all of the spans waited, by the rank for which they did; see :func:`charges`."""
        return charges(self)

    def waiting(self, rows: npt.NDArray[np.bool_]) -> Intervals:
        """The time in which some of the spans wait and none of them transfers."""
        busy = union(self.start_ns[rows], self.end_ns[rows])
        return busy - union((self.start_ns + self.wait_ns)[rows], self.end_ns[rows])


@dataclass(frozen=True)
class RankWait:
    """One rank over ``calls`` matched collectives: ``wait + transfer = busy`` (sums over calls).

    It came last ``last`` times, and what the others waited for it then, added up over them, is ``charged_ns``. A
    collective to which all came together is nobody's.
    """

    rank: int
    calls: int
    busy_ns: int
    wait_ns: int
    transfer_ns: int
    last: int
    charged_ns: int


@dataclass(frozen=True, eq=False)
class Waiting:
    """``windows`` has the waits of every window with a matched span; ``ranks`` sums them up, by rank.

    ``matched`` of ``spans`` spans of collectives have a counterpart on every rank of their group; ``unmatched`` counts
    the others by reason. ``clocks`` are those of the last round that has any, by rank; ``residual_ns`` is how far apart
    the aligned ends of one collective are at most (None without one).
    """

    windows: dict[Window, WindowWaits] = field(default_factory=dict)
    ranks: tuple[RankWait, ...] = ()
    collectives: int = 0
    matched: int = 0
    spans: int = 0
    unmatched: tuple[tuple[str, int], ...] = ()
    clocks: dict[int, Clock] = field(default_factory=dict)
    residual_ns: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Part:
    """One round. ``waits`` is by number of its window; see :class:`Waiting` for the others."""

    waits: dict[int, WindowWaits]
    ranks: tuple[RankWait, ...]
    collectives: int
    spans: int
    unmatched: Counter[str]
    clocks: dict[int, Clock]
    residual_ns: int | None
    notes: tuple[str, ...]


@per_round
def measure(windows: Round, world: int) -> Part:
    """The waits of a round of windows; ``world`` is how many ranks the run has, 0 where that is not known."""
    found = matches(windows, world)
    passed = passing(windows, {window.rank: clock_of(window) for window in windows})
    columns: dict[int, list[WindowWaits]] = {}
    for matched in found.found:
        for at, one in zip(matched.at, _waits(matched, windows, found.clocks), strict=True):
            columns.setdefault(at, []).append(one)
    for message in passed.found:
        for at, one in zip(message.at, _passing_waits(message, windows, found.clocks), strict=True):
            columns.setdefault(at, []).append(one)
    one_sided = [_one_sided(window) for window in windows]
    waits = {at: _joined(parts) for at, parts in columns.items()}
    return Part(
        waits=waits,
        ranks=_ranks({windows[at].rank: one for at, one in waits.items()}),
        collectives=sum(matched.row.shape[1] for matched in found.found) + sum(len(one.step) for one in passed.found),
        spans=sum(int((window.spans.kind == Kind.COLLECTIVE).sum()) for window in windows),
        unmatched=+(found.unmatched + passed.unmatched + Counter({ONE_SIDED: sum(one_sided)})),
        clocks=found.clocks if found.found or passed.found else {},
        residual_ns=_residual(found),
        notes=found.notes,
    )


def records_waits(window: Window) -> bool:
    """Whether the trace itself tells which of its waiting belongs to which collective, as XLA's does on CPU."""
    spans = window.spans
    return bool((spans.collective[spans.kind == Kind.WAIT] >= 0).any())


def meets(window: Window) -> bool:
    """Whether a window's waiting is what XLA recorded as its rendezvous, and not what matching ranks tells."""
    return window.framework != "torch" and records_waits(window)


@per_run
def in_rendezvous(run: Run) -> bool:
    """Whether :class:`~meshscope.analysis.breakdown.Breakdown` has XLA's own record of waiting, in any window."""
    return any(meets(window) for window in run.windows)


def _one_sided(window: Window) -> int:
    spans = window.spans
    others = (*SYNCHRONIZING, *PASSES)
    is_one_sided = np.array([name not in others for name in (*spans.collectives, "")], dtype=bool)
    return int(is_one_sided[spans.collective[spans.kind == Kind.COLLECTIVE]].sum())


def _residual(found: Matches) -> int | None:
    apart = [m.end_ns.max(axis=0) - m.end_ns.min(axis=0) for m in found.found if m.end_ns.shape[1]]
    return int(max(one.max() for one in apart)) if apart else None


def _waits(matched: Matched, windows: Round, clocks: dict[int, Clock]) -> list[WindowWaits]:
    ranks = np.array([windows[at].rank for at in matched.at], dtype=np.int32)
    latest_ns = matched.start_ns.max(axis=0)
    last_rank = last_to_come(matched, ranks)
    middle_ns = np.sort(matched.start_ns, axis=0)[(len(ranks) - 1) // 2]
    late_ns = np.maximum(matched.start_ns - middle_ns, 0)
    found = []
    for at, row, start_ns, end_ns, late in zip(
        matched.at, matched.row, matched.start_ns, matched.end_ns, late_ns, strict=True
    ):
        spans = windows[at].spans
        length_ns = spans.end_ns[row] - spans.start_ns[row]
        found.append(
            WindowWaits(
                row=row,
                start_ns=spans.start_ns[row],
                end_ns=spans.end_ns[row],
                wait_ns=np.clip(np.minimum(latest_ns, end_ns) - start_ns, 0, length_ns),
                late_ns=late,
                last_rank=last_rank,
                ranks=np.full(len(row), len(ranks), dtype=np.int32),
                step=matched.step,
                clock=clocks[windows[at].rank],
            )
        )
    return found


def _passing_waits(passed: Passed, windows: Round, clocks: dict[int, Clock]) -> list[WindowWaits]:
    """Of sender and receiver. Who comes last is told, as the other waits for it; nobody is late: in a line of stages,
    or a ring, that is how the program is meant to run."""
    ranks = [windows[at].rank for at in passed.at]
    begun_ns = np.maximum(*passed.came_ns)
    last_rank = np.where(passed.came_ns[0] >= passed.came_ns[1], ranks[0], ranks[1]).astype(np.int32)
    last_rank[passed.came_ns[0] == passed.came_ns[1]] = -1
    found = []
    for at, row in zip(passed.at, passed.row, strict=True):
        start_ns = windows[at].spans.start_ns[row]
        end_ns = np.maximum(passed.done_ns, start_ns)
        found.append(
            WindowWaits(
                row=row,
                start_ns=start_ns,
                end_ns=end_ns,
                wait_ns=np.clip(begun_ns - start_ns, 0, end_ns - start_ns),
                late_ns=np.zeros(len(row), dtype=np.int64),
                last_rank=last_rank,
                ranks=np.full(len(row), 2, dtype=np.int32),
                step=passed.step,
                clock=clocks.get(windows[at].rank, CLOCK),
            )
        )
    return found


def _joined(parts: list[WindowWaits]) -> WindowWaits:
    """All of one window, by row."""
    order = np.argsort(np.concatenate([part.row for part in parts]), kind="stable")
    names = [name for name in WindowWaits.__dataclass_fields__ if name != "clock"]
    columns = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in names}
    return WindowWaits(**columns, clock=parts[0].clock)


def combine(parts: Iterable[tuple[Round, Part]]) -> Waiting:
    """The rounds of a run, in order."""
    windows: dict[Window, WindowWaits] = {}
    ranks: dict[int, RankWait] = {}
    unmatched: Counter[str] = Counter()
    clocks: dict[int, Clock] = {}
    residuals: list[int] = []
    notes: list[str] = []
    spans = collectives = 0
    for members, part in parts:
        windows |= {members[at]: waits for at, waits in part.waits.items()}
        for rank in part.ranks:
            ranks[rank.rank] = _added(ranks[rank.rank], rank) if rank.rank in ranks else rank
        unmatched += part.unmatched
        clocks = part.clocks or clocks
        spans, collectives = spans + part.spans, collectives + part.collectives
        residuals += [] if part.residual_ns is None else [part.residual_ns]
        notes += part.notes
    return Waiting(
        windows=windows,
        ranks=tuple(ranks[rank] for rank in sorted(ranks)),
        collectives=collectives,
        matched=sum(rank.calls for rank in ranks.values()),
        spans=spans,
        unmatched=tuple(unmatched.most_common()),
        clocks=clocks,
        residual_ns=max(residuals, default=None),
        notes=tuple(dict.fromkeys(notes)),
    )


def _ranks(waits: dict[int, WindowWaits]) -> tuple[RankWait, ...]:
    """By rank, from the waits of each."""
    charged: Counter[int] = Counter()
    for one in waits.values():
        charged.update(one.charged)
    return tuple(_rank(rank, waits[rank], charged[rank]) for rank in sorted(waits))


def _added(a: RankWait, b: RankWait) -> RankWait:
    names = [name for name in RankWait.__dataclass_fields__ if name != "rank"]
    return RankWait(rank=a.rank, **{name: getattr(a, name) + getattr(b, name) for name in names})


def charges(waits: WindowWaits, rows: npt.NDArray[np.bool_] | None = None) -> dict[int, int]:
    """What some of the spans waited (all when None), by the rank for which they did; what is nobody's is left out."""
    last_rank, wait_ns = waits.last_rank, waits.wait_ns
    if rows is not None:
        last_rank, wait_ns = last_rank[rows], wait_ns[rows]
    known, number = np.unique(last_rank, return_inverse=True)
    sums = np.zeros(len(known), dtype=np.int64)
    np.add.at(sums, number.reshape(-1), wait_ns)
    return {rank: total for rank, total in zip(known.tolist(), sums.tolist(), strict=True) if total and rank >= 0}


def held_ns(waits: WindowWaits, rows: npt.NDArray[np.bool_] | None = None) -> dict[int, int]:
    """How long a window waits for each rank in some of its spans (all when None): calls that wait at once count once.

    What is nobody's is left out, and so is time in which another call that waited for the same rank transfers.
    """
    keep = waits.last_rank >= 0 if rows is None else rows & (waits.last_rank >= 0)
    known, number = np.unique(waits.last_rank[keep], return_inverse=True)
    number = number.reshape(-1).astype(np.int64)
    start_ns, end_ns = waits.start_ns[keep], waits.end_ns[keep]
    waited = apart(number, start_ns, end_ns).without(number, start_ns + waits.wait_ns[keep], end_ns)
    return {rank: ns for rank, ns in zip(known.tolist(), waited.total_ns(len(known)).tolist(), strict=True) if ns}


def _rank(rank: int, own: WindowWaits, charged_ns: int) -> RankWait:
    busy_ns, wait_ns = int((own.end_ns - own.start_ns).sum()), int(own.wait_ns.sum())
    last = int((own.last_rank == rank).sum())
    return RankWait(rank, len(own.row), busy_ns, wait_ns, busy_ns - wait_ns, last, charged_ns)


@per_run
def waiting(run: Run) -> Waiting:
    """Empty where no window was read."""
    here = world(run)
    return combine((members, measure(members, here)) for members in rounds(run))


def world(run: Run) -> int:
    """How many ranks the run has, 0 where that is not known."""
    said = max((window.world for window in run.windows), default=0)
    return said or (run.experiment.ranks if run.experiment.strategy else 0)
