"""What a timeline shows and where its cursor stands: a value that keys change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from meshscope.ui.timeline.searching import Search
from meshscope.ui.timeline.viewport import Viewport

_LONGEST_TRAIL = 100


@dataclass(frozen=True)
class Spot:
    """A place to come back to; see :class:`State`."""

    view: Viewport
    at_ns: int
    rank: int
    role: str
    branch: str
    pinned: tuple[int, int] | None


@dataclass(frozen=True)
class State:
    """``rank``, ``role`` and ``branch`` name the lane of the cursor, ``at_ns`` its time; ``marks`` are up to two.

    ``shown`` are the ranks that are shown, in their order; ``only`` is the filter that chose them, "" for all.
    Ranks that are ``folded`` have one line, lanes that are ``opened`` (rank, role) one more for each of their queues.
    ``pinned`` is the span that was gone to (window, row), which stays chosen until the cursor moves. ``top`` is the
    first visible line of the lanes; ``trail`` is where the cursor was before it was sent elsewhere, the newest last.
    """

    view: Viewport
    at_ns: int
    rank: int
    role: str
    shown: tuple[int, ...]
    branch: str = ""
    only: str = ""
    folded: frozenset[int] = frozenset()
    opened: frozenset[tuple[int, str]] = frozenset()
    sort: str = "rank"
    marks: tuple[int, ...] = ()
    bookmarks: tuple[int, ...] = ()
    pinned: tuple[int, int] | None = None
    search: Search | None = field(default=None, compare=False)
    top: int = 0
    trail: tuple[Spot, ...] = field(default=(), compare=False)

    @property
    def spot(self) -> Spot:
        return Spot(self.view, self.at_ns, self.rank, self.role, self.branch, self.pinned)


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
    return replace(state, view=view, at_ns=view.edge(min(max(column, 0), view.columns - 1)), pinned=None)


def zoomed(state: State, factor: float) -> State:
    """Around the cursor, which comes to the middle where it was not on the screen."""
    view = state.view.holding(state.at_ns)
    return replace(state, view=view.zoomed(factor, state.at_ns))


def gone(state: State, at_ns: int, *, window: int = -1, row: int = -1) -> State:
    """The cursor at a time, and on a span where one is meant."""
    pinned = (window, row) if row >= 0 else None
    return replace(state, at_ns=at_ns, view=state.view.holding(at_ns), pinned=pinned)


def marked(state: State) -> State:
    """A mark at the cursor; a third begins anew."""
    return replace(state, marks=(*state.marks, state.at_ns) if len(state.marks) < 2 else (state.at_ns,))


def bookmarked(state: State) -> State:
    """A bookmark at the cursor; those in its column are taken away instead, if there are any."""
    column = state.view.column(state.at_ns)
    here = {at for at in state.bookmarks if state.view.column(at) == column}
    kept = set(state.bookmarks) - here if here else {*state.bookmarks, state.at_ns}
    return replace(state, bookmarks=tuple(sorted(kept)))


def next_bookmark(state: State) -> State | None:
    """The next in time, after the last the first; None where there is none."""
    if not state.bookmarks:
        return None
    return gone(state, next((at for at in state.bookmarks if at > state.at_ns), state.bookmarks[0]))


def departed(before: State, after: State) -> State:
    """``after``, from which :func:`returned` comes back to ``before``; the same where nothing would be to see of it."""
    if before.spot == after.spot:
        return after
    return replace(after, trail=(*before.trail, before.spot)[-_LONGEST_TRAIL:])


def returned(state: State) -> State | None:
    """Where the cursor was before it was sent here; None where it has not been sent.

    On the lane where it is now where a filter hides the rank that it was on.
    """
    if not state.trail:
        return None
    last, rest = state.trail[-1], state.trail[:-1]
    back = replace(state, view=last.view.sized(state.view.columns), at_ns=last.at_ns, pinned=None, trail=rest)
    if last.rank not in state.shown:
        return back
    return replace(back, rank=last.rank, role=last.role, branch=last.branch, pinned=last.pinned)
