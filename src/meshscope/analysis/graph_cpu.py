"""A torch CPU rank as moments: its computing thread between calls and returns, and gloo's threads.

Waiting for gloo leaves no operator, only a pause of the computing thread in which a collective ends.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meshscope.analysis.graph import Draft, Part, Turn
from meshscope.analysis.graph_device import Range, Work
from meshscope.intervals import Intervals, complement, union, window
from meshscope.spans import Kind, SpanTable

Ints = npt.NDArray[np.int64]

MOST_ELSEWHERE = 0.05
"""More of the computing than this on other threads, and the order of one thread is not that of the rank."""


def computing_thread(spans: SpanTable) -> int | None:
    """The lane that computes; None where several do."""
    rows = spans.kind == Kind.COMPUTE
    lanes = np.unique(spans.lane[rows]).tolist()
    if not lanes:
        return None
    busy = {}
    for lane in lanes:
        mine = rows & (spans.lane == lane)
        busy[lane] = union(spans.start_ns[mine], spans.end_ns[mine]).total_ns
    main = max(busy, key=lambda lane: busy[lane])
    return int(main) if sum(busy.values()) - busy[main] <= MOST_ELSEWHERE * busy[main] else None


def thread_moments(draft: Draft, here: Range, work: Work, main: int) -> Ints:
    """Adds the thread's moments with what they depend on, and lets gloo's spans depend on their calls.

    ``work`` are the gloo spans. Returns the last moment.
    """
    spans = here.spans
    opening = here.moments(draft, np.array([here.start_ns]), Part.START, Turn.DEVICE)
    draft.depend(opening, np.zeros(1, dtype=np.int64))
    link = spans.link[work.row]
    inside = (link >= 0) & (spans.start_ns[link] >= here.start_ns) & (spans.start_ns[link] < here.end_ns)
    call = np.unique(link[inside])
    called = here.moments(draft, spans.start_ns[call], Part.HOST, Turn.CALL, call)
    pauses, ended = _pauses(here, work, main)
    left = here.moments(draft, pauses.start_ns, Part.HOST, Turn.RETURN)
    back = here.moments(draft, pauses.end_ns, Part.HOST, Turn.RETURN)
    draft.depend(back, work.finish[ended])
    closing = here.moments(draft, np.array([here.end_ns]), Part.HOST, Turn.STEP_END)
    moment = draft.in_order(np.concatenate((opening, called, left, back, closing)))
    draft.depend(moment[1:], moment[:-1])
    place = np.full(len(spans), -1, dtype=np.int64)
    place[call] = called
    draft.depend(work.begin[work.row], np.where(inside, place[np.maximum(link, 0)], -1))
    return closing


def _pauses(here: Range, work: Work, main: int) -> tuple[Intervals, Ints]:
    """When the thread did nothing while a collective of the rank ended, and the last that did."""
    spans = here.spans
    active = np.isin(spans.kind, (Kind.COMPUTE, Kind.LAUNCH)) & (spans.lane == main)
    idle = window(
        complement(union(spans.start_ns[active], spans.end_ns[active]), here.start_ns, here.end_ns),
        here.start_ns,
        here.end_ns,
    )
    row = work.row[np.argsort(spans.end_ns[work.row], kind="stable")]
    if not len(row):
        return Intervals(idle.start_ns[:0], idle.end_ns[:0]), row
    at = np.searchsorted(spans.end_ns[row], idle.end_ns, side="right") - 1
    last = row[np.maximum(at, 0)]
    keep = (at >= 0) & (spans.end_ns[last] > idle.start_ns)
    return Intervals(idle.start_ns[keep], idle.end_ns[keep]), last[keep]
