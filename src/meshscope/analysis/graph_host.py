"""The host of a GPU rank as moments: launches in their order, and returns from waits for the device."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from meshscope.analysis.graph import Draft, Part, Turn
from meshscope.analysis.graph_blocked import SURE_NS, held_by
from meshscope.analysis.graph_device import Range, Work
from meshscope.analysis.host_activity import host_named
from meshscope.spans import Kind

Ints = npt.NDArray[np.int64]

_SYNC = re.compile(
    r"^(cuda|hip)(Stream|Device|Event)Synchronize|^(cuda|hip)Memcpy(WithStream)?$|^cu(Stream|Ctx|Event)Synchronize"
)


def host_moments(draft: Draft, here: Range, work: Work) -> Ints:
    """Adds them with what they depend on, and lets device work depend on its launch. Returns the last moment."""
    spans = here.spans
    inside = (spans.start_ns >= here.start_ns) & (spans.start_ns < here.end_ns)
    launch = np.flatnonzero((spans.kind == Kind.LAUNCH) & inside)
    sync = np.flatnonzero(host_named(spans, _SYNC.match) & inside & (spans.end_ns <= here.end_ns))
    opening = here.moments(draft, np.array([here.start_ns]), Part.START, Turn.DEVICE)
    draft.depend(opening, np.zeros(1, dtype=np.int64))
    called = here.moments(draft, spans.start_ns[launch], Part.HOST, Turn.CALL, launch)
    blocked, ends = _blocking(here, launch, work)
    blocked_end = here.moments(draft, spans.end_ns[blocked], Part.HOST, Turn.RETURN, blocked, place=3)
    draft.depend(blocked_end, work.finish[ends])
    asked = here.moments(draft, spans.start_ns[sync], Part.HOST, Turn.CALL, sync)
    returned = here.moments(draft, spans.end_ns[sync], Part.HOST, Turn.RETURN, sync, place=3)
    draft.depend(returned, _ended_within(here, sync, work))
    closing = here.moments(draft, np.array([here.end_ns]), Part.HOST, Turn.STEP_END)
    _in_order(
        draft,
        np.concatenate((opening, called, blocked_end, asked, returned, closing)),
        np.concatenate(([-1], spans.lane[launch], spans.lane[blocked], spans.lane[sync], spans.lane[sync], [-1])),
    )
    _after_launch(draft, here, work, launch, called)
    seen = (launch, spans.end_ns[blocked], spans.start_ns[sync], spans.end_ns[sync])
    draft.depend(called, _held_until(here, work, seen))
    return closing


def _held_until(here: Range, work: Work, seen: tuple[Ints, ...]) -> Ints:
    """The end of the collective for which each launch call surely waited, −1 for most; ``seen`` are the launches, and
    the times at which the host was seen otherwise."""
    spans, (launch, *others) = here.spans, seen
    times_ns = np.sort(np.concatenate(([here.start_ns], spans.start_ns[launch], *others)))
    before = np.searchsorted(times_ns, spans.start_ns[launch], side="left") - 1
    row = held_by(here, launch, times_ns[np.maximum(before, 0)])
    is_sure = (row >= 0) & (spans.start_ns[launch] - spans.end_ns[row] <= SURE_NS)
    return np.where(is_sure, work.finish[row], -1)


def host_waits(here: Range) -> int:
    """How many recorded waits of the host for its device lie in the steps."""
    spans = here.spans
    inside = (spans.end_ns > here.start_ns) & (spans.start_ns < here.end_ns)
    return int((host_named(spans, _SYNC.match) & inside).sum())


def _blocking(here: Range, launch: Ints, work: Work) -> tuple[Ints, Ints]:
    """Launch calls that returned only after their own piece of work had ended, as pageable copies do; and those."""
    spans = here.spans
    row = work.row[spans.link[work.row] >= 0]
    link = spans.link[row]
    is_blocked = (spans.end_ns[row] <= spans.end_ns[link]) & (spans.end_ns[row] > spans.start_ns[link])
    is_blocked &= np.isin(link, launch) & (spans.end_ns[link] <= here.end_ns)
    row = row[is_blocked]
    row = row[np.argsort(spans.end_ns[row], kind="stable")]
    _, last = np.unique(spans.link[row][::-1], return_index=True)
    row = row[::-1][last]
    return spans.link[row], row


def _ended_within(here: Range, sync: Ints, work: Work) -> Ints:
    """The end of the last piece of device work that ended during each synchronization, −1 where none did."""
    spans = here.spans
    row = work.row[np.argsort(spans.end_ns[work.row], kind="stable")]
    if not len(row):
        return np.full(len(sync), -1, dtype=np.int64)
    at = np.searchsorted(spans.end_ns[row], spans.end_ns[sync], side="right") - 1
    last = row[np.maximum(at, 0)]
    return np.where((at >= 0) & (spans.end_ns[last] > spans.start_ns[sync]), work.finish[last], -1)


def _in_order(draft: Draft, moment: Ints, lane: Ints) -> None:
    """Each moment after the one before it on its thread, and after the one before it on any: one thread of a rank waits
    for the other, as Python does for the backward pass."""
    ordered = draft.in_order(moment)
    at = np.argsort(moment, kind="stable")
    lane = lane[at[np.searchsorted(moment[at], ordered)]]
    moment = ordered
    draft.depend(moment[1:], moment[:-1])
    for one in np.unique(lane).tolist():
        mine = moment[lane == one]
        draft.depend(mine[1:], mine[:-1])


def _after_launch(draft: Draft, here: Range, work: Work, launch: Ints, called: Ints) -> None:
    spans = here.spans
    call = np.full(len(spans), -1, dtype=np.int64)
    call[launch] = called
    link = spans.link[work.row]
    draft.depend(work.begin[work.row], np.where(link >= 0, call[link], -1))
