"""A rank's device work as moments: a piece begins after what was before it on its stream, and on others if it waits."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.clocks import Clock
from meshscope.analysis.graph import Draft, Part, Turn
from meshscope.analysis.host_activity import host_named
from meshscope.analysis.idle import WORK
from meshscope.spans import Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_WAIT_EVENT = re.compile(r"^(cuda|hip)StreamWaitEvent|^cuStreamWaitEvent")
MOST_LANES = 8
"""Streams (or threads) that a piece of work may have waited for: those with most work."""

PART_OF = {Kind.COMPUTE: Part.COMPUTE, Kind.COLLECTIVE: Part.WAITED, Kind.COPY: Part.COPY}


@dataclass(frozen=True, eq=False)
class Range:
    """One window of a round: ``number`` in it, its spans by the common clock, and the steps looked at [start, end).

    ``asked_ns`` is when the host had asked for all of their work, which may be before the device comes to it.
    ``clock`` is the window's own.
    """

    number: int
    window: Window
    spans: SpanTable
    start_ns: int
    end_ns: int
    asked_ns: int
    steps: tuple[int, ...]
    clock: Clock

    @property
    def rank(self) -> int:
        return self.window.rank

    def moments(
        self, draft: Draft, time_ns: Ints, part: Part, turn: Turn, row: Ints | None = None, *, place: int = 0
    ) -> Ints:
        """The numbers of new moments of this window; see :meth:`Draft.add`."""
        return draft.add(time_ns, part, turn, rank=self.rank, window=self.number, row=row, place=place)


@dataclass(frozen=True, eq=False)
class Work:
    """Device work of a window: moments by row of its spans, −1 for rows that are none of it."""

    row: Ints
    begin: Ints
    finish: Ints


def device_work(draft: Draft, here: Range, row: Ints) -> Work:
    """Moments of some rows, without what they depend on."""
    spans, count = here.spans, len(here.spans)
    begin, finish = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    for kind, part in PART_OF.items():
        mine = row[spans.kind[row] == kind]
        begin[mine] = here.moments(draft, spans.start_ns[mine], Part.DELAY, Turn.DEVICE, mine)
        finish[mine] = here.moments(draft, spans.end_ns[mine], part, Turn.DEVICE, mine, place=3)
        is_running = spans.start_ns[mine] < draft.start_ns
        draft.depend(finish[mine], np.where(is_running, -1, begin[mine]))
    return Work(row, begin, finish)


def in_range(here: Range) -> Ints:
    """Rows of device work that was asked for within the steps, or began then where that is not known; and before it
    what still ran when the steps began."""
    spans = here.spans
    row = np.flatnonzero(np.isin(spans.kind, WORK))
    link = spans.link[row]
    asked_ns = np.where(link >= 0, np.minimum(spans.start_ns[link], spans.start_ns[row]), spans.start_ns[row])
    return row[(asked_ns < here.asked_ns) & (spans.end_ns[row] > here.start_ns)]


def after_streams(draft: Draft, here: Range, work: Work, *, waits: Flags | None = None) -> None:
    """Each piece after the last that ended before it on its own lane; and on every other lane, where it waits.

    ``waits`` (as long as ``work.row``) tells which pieces do; None for all of them.
    """
    spans, row = here.spans, work.row
    lane = spans.lane[row]
    codes, counts = np.unique(lane, return_counts=True)
    largest = codes[np.argsort(-counts, kind="stable")][:MOST_LANES]
    for one in codes.tolist():
        before = row[lane == one]
        has_length = spans.end_ns[before] > spans.start_ns[before]
        before = before[np.lexsort((has_length, spans.end_ns[before]))]
        may = lane == one
        if one in largest:
            may = may | (True if waits is None else waits)
        later = row[may & (spans.start_ns[row] >= draft.start_ns)]
        # Of what has no length and stands at the very moment, nobody can tell whether it came before: so both.
        for side in ("left", "right"):
            at = np.searchsorted(spans.end_ns[before], spans.start_ns[later], side=side) - 1
            draft.depend(work.begin[later], np.where(at >= 0, work.finish[before[np.maximum(at, 0)]], -1))


def waiting_for_streams(spans: SpanTable, row: Ints) -> Flags | None:
    """Which pieces of work may wait for another stream: those before whose launch, and after the launch before it on
    their stream, the host had a stream wait for an event. None where the trace records no such call."""
    calls = np.sort(spans.start_ns[host_named(spans, _WAIT_EVENT.match)])
    if not len(calls):
        return None
    link = spans.link[row]
    launched_ns = np.where(link >= 0, spans.start_ns[link], -1)
    found = np.ones(len(row), dtype=bool)
    for lane in np.unique(spans.lane[row]).tolist():
        mine = np.flatnonzero((spans.lane[row] == lane) & (link >= 0))
        mine = mine[np.argsort(launched_ns[mine], kind="stable")]
        known = np.searchsorted(calls, launched_ns[mine], side="right")
        found[mine] = np.diff(known, prepend=0) > 0
    return found


def meetings(draft: Draft, begin: Ints, finish: Ints, times_ns: tuple[Ints, Ints], row: Ints) -> Ints:
    """Collectives on all of their ranks: nobody's can end before all have come.

    ``begin`` and ``finish`` are the moments, ``times_ns`` when those were and ``row`` the rows: all (ranks, m). Returns
    the ends that are transfer after the meeting; one that came before the last rank contradicts the clocks.
    """
    start_ns, end_ns = times_ns
    met = draft.add(start_ns.max(axis=0), Part.MEETING, Turn.DEVICE, row=row.max(axis=0), place=1)
    is_after = end_ns > start_ns.max(axis=0)
    found = []
    for number in range(len(begin)):
        draft.depend(met, begin[number])
        draft.depend(finish[number], np.where(is_after[number], met, -1))
        found.append(finish[number][is_after[number]])
    return np.concatenate(found)
