"""The graph of a round of windows: every rank's work over the complete steps that they share, joined by collectives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from meshscope.analysis.calls import is_gloo
from meshscope.analysis.clocks import Clock
from meshscope.analysis.device_steps import device_step_ns
from meshscope.analysis.graph import Draft, Graph, Part, Turn
from meshscope.analysis.graph_cpu import computing_thread, thread_moments
from meshscope.analysis.graph_device import (
    Range,
    Work,
    after_streams,
    device_work,
    in_range,
    meetings,
    waiting_for_streams,
)
from meshscope.analysis.graph_host import host_moments, host_waits
from meshscope.analysis.matching import Matches, clock_of, matches
from meshscope.analysis.parts import per_round
from meshscope.analysis.passing import Passed, passing
from meshscope.analysis.rounds import Round
from meshscope.spans import Kind, SpanTable, Window

Ints = npt.NDArray[np.int64]

NO_COMMON_STEP = "the windows of the ranks share no complete step"
SEVERAL_THREADS = "several threads compute, and which waits for which is not recorded"


@dataclass(frozen=True, eq=False)
class RoundGraph:
    """``ranges`` are the windows, in the order that ``graph.window`` numbers; ``steps`` those that all of them share.

    ``unmatched`` of ``collectives`` have no counterpart on every rank, so that their waiting is in their time;
    ``unmatched_ns`` is that time. ``has_host`` says whether launches are there, and ``host_waits`` counts the waits of
    hosts for their devices that are recorded. ``is_passing``: ranks pass on to one another what these need to go on, as
    stages of a pipeline do. ``why`` says why there is no graph.
    """

    graph: Graph | None
    ranges: tuple[Range, ...]
    steps: tuple[int, ...]
    collectives: int = 0
    unmatched: int = 0
    unmatched_ns: int = 0
    has_host: bool = False
    host_waits: int = 0
    is_passing: bool = False
    why: str = ""


@per_round
def measure(windows: Round, world: int) -> RoundGraph:
    """``world`` is how many ranks the run has, 0 where that is not known."""
    found = matches(windows, world)
    ranges, why = _ranges(windows, found)
    if why or not ranges:
        return RoundGraph(None, (), (), why=why)
    draft = Draft(min(one.start_ns for one in ranges))
    works, closings, has_host = [], [], False
    for here in ranges:
        made = _rank(draft, here)
        if isinstance(made, str):
            return RoundGraph(None, (), (), why=made)
        work, closing, launched = made
        has_host |= launched
        works.append(work)
        closings.append(closing)
    passed = passing(windows, {window.rank: clock_of(window) for window in windows}).found
    transfer = _meet(draft, _met(found, passed), ranges, works)
    graph = draft.graph({Part.TRANSFER: transfer}, np.concatenate(closings))
    return replace(_told(graph, ranges, works, has_host=has_host), is_passing=bool(passed))


def _ranges(windows: Sequence[Window], found: Matches) -> tuple[tuple[Range, ...], str]:
    """What is looked at of each window: the steps that all have, or everything where no window has one."""
    stepped = [window for window in windows if window.steps]
    steps: tuple[int, ...] = ()
    if stepped:
        if len(stepped) < len(windows):
            return (), NO_COMMON_STEP
        steps = tuple(sorted(set.intersection(*(set(window.steps) for window in windows))))
        if not steps:
            return (), NO_COMMON_STEP
    made = []
    for number, window in enumerate(windows):
        clock = found.clocks.get(window.rank, Clock())
        spans = _common(window.spans, clock)
        start_ns, end_ns = clock.common(np.array(_bounds(window, steps), dtype=np.int64)).tolist()
        made.append(Range(number, window, spans, start_ns, max(start_ns, end_ns), end_ns, steps, clock))
    return tuple(made), ""


def _bounds(window: Window, steps: Sequence[int]) -> tuple[int, int]:
    """From where the device comes to the first of some steps to where the host ends the last.

    What the host launches until then is of these steps, however long after it runs; it may all be launched before.
    """
    if not steps:
        return window.start_ns, window.end_ns
    here = np.isin(window.steps, steps)
    start_ns, end_ns = int(device_step_ns(window)[here, 0].min()), int(window.step_ns[here, 1].max())
    return start_ns, end_ns


def _has_launches(window: Window) -> bool:
    return (
        window.framework == "torch" and window.device_kind == "gpu" and bool((window.spans.kind == Kind.LAUNCH).any())
    )


def _common(spans: SpanTable, clock: Clock) -> SpanTable:
    """By the common clock, where a span keeps its order and no end comes before its start."""
    if clock == Clock():
        return spans
    start_ns, end_ns = clock.common(spans.start_ns), clock.common(spans.end_ns)
    return replace(spans, start_ns=start_ns, end_ns=np.maximum(start_ns, end_ns))


def _rank(draft: Draft, here: Range) -> tuple[Work, Ints, bool] | str:
    """The rank's device work, its last moment, and whether its launches are there; or why that cannot be said."""
    spans = here.spans
    row = in_range(here)
    if is_gloo(here.window):
        main = computing_thread(spans)
        if main is None:
            return SEVERAL_THREADS
        work = device_work(draft, here, row[spans.kind[row] == Kind.COLLECTIVE])
        after_streams(draft, here, work, waits=np.zeros(len(work.row), dtype=bool))
        return work, thread_moments(draft, here, work, main), False
    work = device_work(draft, here, row)
    if _has_launches(here.window):
        after_streams(draft, here, work, waits=waiting_for_streams(spans, row))
        return work, host_moments(draft, here, work), True
    after_streams(draft, here, work)
    return work, _step_ends(draft, here, work), False


def _step_ends(draft: Draft, here: Range, work: Work) -> Ints:
    """The step's end, after whatever the device had done by then."""
    row = work.row[np.argsort(here.spans.end_ns[work.row], kind="stable")]
    closing = here.moments(draft, np.array([here.end_ns]), Part.HOST, Turn.STEP_END)
    at = int(np.searchsorted(here.spans.end_ns[row], here.end_ns, side="right")) - 1
    if at >= 0:
        draft.depend(closing, work.finish[row[at : at + 1]])
    return closing


def _met(found: Matches, messages: Iterable[Passed]) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Numbers of the windows of some ranks, and the rows (ranks, m) in which they meet: collectives, and two ranks of
    which one receives what the other sends."""
    for matched in found.found:
        yield matched.at, matched.row
    for passed in messages:
        yield passed.at, np.stack(passed.row)


def _meet(
    draft: Draft, met: Iterable[tuple[tuple[int, ...], Ints]], ranges: Sequence[Range], works: Sequence[Work]
) -> Ints:
    """Joins the ranks wherever all of them have a meeting in range; the ends that are transfer."""
    ends = [np.empty(0, dtype=np.int64)]
    for places, rows in met:
        begin = np.stack([works[at].begin[row] for at, row in zip(places, rows, strict=True)])
        finish = np.stack([works[at].finish[row] for at, row in zip(places, rows, strict=True)])
        keep = (begin >= 0).all(axis=0)
        row = rows[:, keep]
        times = tuple(
            np.stack([getattr(ranges[at].spans, name)[mine] for at, mine in zip(places, row, strict=True)])
            for name in ("start_ns", "end_ns")
        )
        if keep.any():
            ends.append(meetings(draft, begin[:, keep], finish[:, keep], (times[0], times[1]), row))
    return np.concatenate(ends)


def _told(graph: Graph, ranges: tuple[Range, ...], works: Sequence[Work], *, has_host: bool) -> RoundGraph:
    kinds = np.concatenate([here.spans.kind[work.row] for here, work in zip(ranges, works, strict=True)])
    is_waited = graph.part == Part.WAITED
    return RoundGraph(
        graph=graph,
        ranges=ranges,
        steps=ranges[0].steps,
        collectives=int((kinds == Kind.COLLECTIVE).sum()),
        unmatched=int(is_waited.sum()),
        unmatched_ns=int(graph.weight_ns[is_waited].sum()),
        has_host=has_host,
        host_waits=sum(host_waits(here) for here in ranges),
    )
