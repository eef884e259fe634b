"""What a timeline shows and where its cursor stands: a value that keys change."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from meshscope.analysis.lanes import Lane, Lanes
from meshscope.errors import InputError
from meshscope.ui.timeline.viewport import Viewport

Flags = npt.NDArray[np.bool_]

ALL_LANES_UP_TO = 16
"""More ranks than this begin as one lane each."""

SORTS = ("rank", "exposed", "compute")


@dataclass(frozen=True, eq=False)
class Search:
    """``names`` has, for every window of the timeline, which of its names are meant; ``collectives`` the same."""

    text: str
    names: tuple[Flags, ...]
    collectives: tuple[Flags, ...]


@dataclass(frozen=True)
class State:
    """``rank`` and ``role`` name the lane of the cursor, ``at_ns`` its time; ``marks`` are at most two times.

    ``shown`` are the ranks that are shown, in their order. ``pinned`` is the span that was gone to (window, row), which
    stays chosen until the cursor moves. ``top`` is the first visible line of the lanes.
    """

    view: Viewport
    at_ns: int
    rank: int
    role: str
    shown: tuple[int, ...]
    is_collapsed: bool = False
    sort: str = SORTS[0]
    marks: tuple[int, ...] = ()
    bookmarks: tuple[int, ...] = ()
    pinned: tuple[int, int] | None = None
    search: Search | None = field(default=None, compare=False)
    top: int = 0


def begun(lanes: Lanes, view: Viewport) -> State:
    """The first step that was profiled, or all there is."""
    ranks = lanes.ranks
    state = State(view, view.start_ns, ranks[0], lanes.lanes[0].role, ranks, is_collapsed=len(ranks) > ALL_LANES_UP_TO)
    if len(lanes.steps.number):
        start, end = int(lanes.steps.start_ns[0]), int(lanes.steps.end_ns[0])
        edge = (end - start) // 50
        state = replace(state, view=view.showing(start - edge, end + edge), at_ns=start)
    return state


def visible(lanes: Lanes, state: State) -> list[Lane]:
    """The lanes in their order on the screen: all of each rank that is shown, or its first where they are collapsed."""
    by_rank: dict[int, list[Lane]] = {}
    for lane in lanes.lanes:
        by_rank.setdefault(lane.rank, []).append(lane)
    return [lane for rank in state.shown for lane in (by_rank[rank][:1] if state.is_collapsed else by_rank[rank])]


def current(lanes: Lanes, state: State) -> Lane:
    """The lane of the cursor."""
    found = [lane for lane in visible(lanes, state) if lane.rank == state.rank]
    return next((lane for lane in found if lane.role == state.role), found[0])


def lane_moved(lanes: Lanes, state: State, by: int) -> State:
    rows = visible(lanes, state)
    at = next(number for number, lane in enumerate(rows) if lane is current(lanes, state))
    lane = rows[min(max(at + by, 0), len(rows) - 1)]
    return replace(state, rank=lane.rank, role=lane.role, pinned=None)


def time_moved(state: State, columns: int) -> State:
    """The cursor so many columns on; at an edge the stretch moves along."""
    column = state.view.column(state.at_ns) + columns
    at_ns = state.view.edge(column)
    view = state.view
    if not 0 <= column < view.columns:
        view = view.moved(at_ns - (view.start_ns if column < 0 else view.edge(view.columns - 1)))
    return replace(state, view=view, at_ns=min(max(at_ns, view.start_ns), view.stop_ns - 1), pinned=None)


def panned(state: State, share: float) -> State:
    """The stretch moved by a share of itself; the cursor keeps its column."""
    column = state.view.column(state.at_ns)
    view = state.view.moved(round(state.view.span_ns * share))
    return replace(state, view=view, at_ns=view.edge(column), pinned=None)


def zoomed(state: State, factor: float) -> State:
    return replace(state, view=state.view.zoomed(factor, state.at_ns))


def gone(state: State, at_ns: int, *, window: int = -1, row: int = -1) -> State:
    """The cursor at a time, and on a span where one is meant."""
    pinned = (window, row) if row >= 0 else None
    return replace(state, at_ns=at_ns, view=state.view.holding(at_ns), pinned=pinned)


def marked(state: State) -> State:
    """A mark at the cursor; a third begins anew."""
    return replace(state, marks=(*state.marks, state.at_ns) if len(state.marks) < 2 else (state.at_ns,))


def sorted_by(lanes: Lanes, state: State, sort: str) -> State:
    """The ranks in another order: by number, or by most exposed communication or compute on the screen."""
    return replace(state, sort=sort, shown=_ordered(lanes, state, sort, state.shown))


def _ordered(lanes: Lanes, state: State, sort: str, ranks: Iterable[int]) -> tuple[int, ...]:
    if sort == "rank":
        return tuple(sorted(ranks))
    wanted = ("exposed", "wait") if sort == "exposed" else ("compute",)
    edges = np.array([state.view.start_ns, state.view.stop_ns], dtype=np.int64)
    busy = dict.fromkeys(ranks, 0)
    for lane in lanes.lanes:
        for meaning, covered in lane.layers:
            if lane.rank in busy and meaning in wanted and lane.role != "waits":
                busy[lane.rank] += int(np.diff(covered.upto(edges))[0])
    return tuple(sorted(busy, key=lambda rank: (-busy[rank], rank)))


def filtered(lanes: Lanes, state: State, text: str) -> State:
    """Only some ranks, ``0,4-7``; all of them where the text is empty. Raises InputError."""
    chosen = parse_ranks(text, lanes.ranks) if text.strip() else lanes.ranks
    rank = state.rank if state.rank in chosen else chosen[0]
    return replace(state, shown=_ordered(lanes, state, state.sort, chosen), rank=rank, pinned=None)


def parse_ranks(text: str, known: Iterable[int]) -> tuple[int, ...]:
    """Ranks named by numbers and ranges. Raises InputError for what is neither, or names no rank there is."""
    known = tuple(known)
    chosen: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = re.fullmatch(r"(\d{1,9})(?:\s*[-–]\s*(\d{1,9}))?", part)
        if found is None:
            raise InputError(f"{part[:20]!r} names no ranks.", hint="Write them like 0,4-7.")
        low, high = int(found[1]), int(found[2] or found[1])
        chosen.update(rank for rank in known if low <= rank <= high)
    if not chosen:
        raise InputError(f"No rank of this run is among {text.strip()[:20]!r}.", hint="Write them like 0,4-7.")
    return tuple(sorted(chosen))
