"""The same collective on all of its ranks: by process group and sequence number, else by order with a check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from meshscope.analysis.calls import Calls, Ints, Queue, calls, is_one_of_several
from meshscope.analysis.clocks import LOOSE_NS, Clock, Ends, Known, clocks, tolerance_ns
from meshscope.analysis.rounds import Round
from meshscope.analysis.shifts import NAMES_DIFFER, Fit, paired
from meshscope.spans import Window
from meshscope.units import counted, ranges

Small = npt.NDArray[np.int32]

_MOST_BROKEN = 0.1
WORLD_UNTOLD = "the traces do not say how many ranks there were: taken as those that are here"


@dataclass(frozen=True, eq=False)
class Matched:
    """m collectives of one queue on all of its R ranks.

    ``at`` (R,) numbers windows of the round and ``row`` (R, m) rows of their spans. ``start_ns`` and ``end_ns`` (R, m)
    are by one common clock; ``step`` (m,) is −1 where untold.
    """

    queue: Queue
    at: tuple[int, ...]
    row: Ints
    start_ns: Ints
    end_ns: Ints
    step: Ints

    def where(self, keep: Ints) -> Matched:
        return Matched(
            self.queue, self.at, self.row[:, keep], self.start_ns[:, keep], self.end_ns[:, keep], self.step[keep]
        )


@dataclass(frozen=True, eq=False)
class Matches:
    """``clocks`` is by rank; ``unmatched`` counts spans by the reason why they have no counterpart on every rank."""

    found: tuple[Matched, ...] = ()
    clocks: dict[int, Clock] = field(default_factory=dict)
    unmatched: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()


def matches(windows: Round, world: int) -> Matches:
    """Collectives of the windows of a round. ``world`` is how many ranks the run has, 0 where that is not known."""
    mine = [calls(window) for window in windows]
    totals: Counter[Queue] = Counter()
    for found in mine:
        for queue, some in found.items():
            totals[queue] += len(some)
    state = _State(windows, world, hosts={window.rank: clock_of(window) for window in windows})
    drafts = []
    for queue, count in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        here = [(at, found[queue]) for at, found in enumerate(mine) if queue in found]
        whose = _of_members(queue, [windows[at].rank for at, _ in here], state)
        why = _absent(whose, [windows[at].rank for at, _ in here], world)
        draft = why or _matched(whose, here, state)
        if isinstance(draft, str):
            state.unmatched[draft] += count
        else:
            state.unmatched[_EDGE] += count - draft.row.size
            drafts.append(draft)
    return _on_one_clock(drafts, state)


_EDGE = "the window of another rank does not hold them"


@dataclass
class _State:
    windows: Round
    world: int
    hosts: dict[int, str]
    known: Known = field(default_factory=Known)
    unmatched: Counter[str] = field(default_factory=Counter)


def clock_of(window: Window) -> str:
    """What names the clock: the machine, or the file where one file holds several ranks."""
    if window.host:
        return f"host {window.host}"
    return f"file {window.source}" if window.rank_from == "device" and window.source else ""


def _of_members(queue: Queue, ranks: list[int], state: _State) -> Queue:
    """The queue of a group that its calls do not name: the ranks that have such calls, where they declare to be a group
    and every other rank is here and has none."""
    if queue.group or queue.size or len(ranks) < 2 or len(state.windows) != state.world:
        return queue
    members = [window for window in state.windows if window.rank in ranks]
    is_group = all(any(set(group.ranks) == set(ranks) for group in window.process_groups) for window in members)
    return queue._replace(size=len(ranks), ranks=tuple(sorted(ranks))) if is_group else queue


def _absent(queue: Queue, ranks: Sequence[int], world: int) -> str:
    """Why a queue cannot be matched at all: a rank that is not here may be the one that came last."""
    size = queue.size or world
    if len(ranks) == size == 1:
        return ""
    if is_one_of_several(queue.group):
        return f"which of {counted(len(ranks), 'rank')} are in one group of {queue.size} cannot be told"
    if queue.ranks and set(queue.ranks) == set(ranks) and len(ranks) > 1:
        return ""
    if len(ranks) > 1 and len(ranks) == size and not queue.ranks:
        return ""
    if not size and len(ranks) > 1 and sorted(ranks) == list(range(len(ranks))):
        return ""
    here = f"rank {ranks[0]} alone" if len(ranks) == 1 else f"ranks {ranges(ranks)}"
    of = f" of the {counted(size, 'rank')} of {'its group' if queue.size else 'the run'}" if size else ""
    return f"only {here}{of} can be seen, and another may have come last"


def _matched(queue: Queue, here: list[tuple[int, Calls]], state: _State) -> Matched | str:
    """Times by each rank's own clock."""
    chosen = _by_sequence(here) if all(_is_numbered(some) for _, some in here) else None
    if chosen is None:
        chosen = _by_order(queue, here, state)
    if isinstance(chosen, str):
        return chosen
    row, start_ns, end_ns, step = (
        np.stack([getattr(some, name)[rows] for (_, some), rows in zip(here, chosen, strict=True)])
        for name in ("row", "start_ns", "end_ns", "step")
    )
    return Matched(queue, tuple(at for at, _ in here), row, start_ns, end_ns, np.sort(step, axis=0)[len(step) // 2])


def _is_numbered(some: Calls) -> bool:
    return bool((some.sequence >= 0).all())


def _by_sequence(here: list[tuple[int, Calls]]) -> list[Ints] | str | None:
    """By sequence number; calls that share one (a coalesced group) by their order. None where the numbers conflict."""
    keys = [_numbered(some.sequence) for _, some in here]
    common = keys[0]
    for other in keys[1:]:
        common = np.intersect1d(common, other, assume_unique=True)
    rows = []
    for key in keys:
        order = np.argsort(key, kind="stable")
        rows.append(order[np.searchsorted(key[order], common)])
    names = [
        [some.labels[number] for number in some.label[chosen].tolist()]
        for (_, some), chosen in zip(here, rows, strict=True)
    ]
    if any(one != names[0] for one in names[1:]):
        return NAMES_DIFFER
    return rows


def _numbered(sequence: Ints) -> Ints:
    """One number for each call: its sequence number and how many had the same before."""
    order = np.argsort(sequence, kind="stable")
    same = np.concatenate(([0], np.diff(sequence[order]) == 0)).astype(np.int64)
    first = np.maximum.accumulate(np.where(same == 0, np.arange(len(order)), 0)) if len(order) else order
    key = np.empty(len(order), dtype=np.int64)
    key[order] = (sequence[order] << 16) | np.minimum(np.arange(len(order)) - first, 0xFFFF)
    return key


def _by_order(queue: Queue, here: list[tuple[int, Calls]], state: _State) -> list[Ints] | str:
    """By order, each rank against the first, with the shift between their windows."""
    first_at, first = here[0]
    rank = state.windows[first_at].rank
    knows_group = bool(queue.group or queue.size)
    shifts = [0]
    for at, some in here[1:]:
        other = state.windows[at].rank
        fit = paired(
            first,
            some,
            offset_ns=state.known.offset_ns(rank, other),
            knows_group=knows_group,
            shares_clock=bool(state.hosts[rank]) and state.hosts[rank] == state.hosts[other],
        )
        if isinstance(fit, str):
            return fit
        _learn(rank, other, fit, state)
        shifts.append(fit.shift)
    low = max(0, *(-shift for shift in shifts))
    high = min(len(some) - shift for (_, some), shift in zip(here, shifts, strict=True))
    if high <= low:
        return _EDGE
    return [np.arange(low, high) + shift for shift in shifts]


def _learn(rank: int, other: int, fit: Fit, state: _State) -> None:
    """What a fit tells about the two clocks. Machines may share a name and still have clocks of their own."""
    if state.known.offset_ns(rank, other) is None:
        state.known.join(rank, other, fit.offset_ns)
        if fit.offset_ns and state.hosts[rank] == state.hosts[other]:
            state.hosts[other] = f"{state.hosts[other]} at rank {other}" if state.hosts[other] else ""


def _on_one_clock(drafts: list[Matched], state: _State) -> Matches:
    """Times corrected, and what contradicts itself taken out: a rank that left before another came was elsewhere."""
    ends = [Ends(tuple(state.windows[at].rank for at in draft.at), draft.end_ns) for draft in drafts]
    for one in ends:
        _relate(one, state)
    clock, scatter_ns = clocks(state.known, state.hosts, ends)
    found = []
    for draft, one in zip(drafts, ends, strict=True):
        matched = replace(draft, start_ns=_common(draft.start_ns, one, clock), end_ns=_common(draft.end_ns, one, clock))
        broken = matched.start_ns.max(axis=0) > matched.end_ns.min(axis=0) + tolerance_ns(scatter_ns)
        if broken.mean() > _MOST_BROKEN:
            state.unmatched[_CONTRADICTION] += matched.row.size
            continue
        state.unmatched[_CONTRADICTION] += int(broken.sum()) * len(matched.at)
        found.append(matched.where(np.flatnonzero(~broken)))
    notes = (WORLD_UNTOLD,) if found and not state.world and any(not one.queue.size for one in found) else ()
    return Matches(tuple(found), clock, +state.unmatched, notes)


_CONTRADICTION = "by the aligned clocks, a rank left before another had come"


def _relate(one: Ends, state: _State) -> None:
    """Clocks of ranks whose collectives were matched by number alone."""
    for number, rank in enumerate(one.ranks[1:], start=1):
        if one.end_ns.shape[1] and state.known.offset_ns(one.ranks[0], rank) is None:
            same = bool(state.hosts[rank]) and state.hosts[rank] == state.hosts[one.ranks[0]]
            apart = 0 if same else int(np.median(one.end_ns[number] - one.end_ns[0]))
            state.known.join(one.ranks[0], rank, apart)


def _common(time_ns: Ints, one: Ends, clock: dict[int, Clock]) -> Ints:
    return np.stack([clock[rank].common(row) for rank, row in zip(one.ranks, time_ns, strict=True)])


def last_to_come(matched: Matched, ranks: Small) -> Small:
    """Who came last to each collective, shape (m,); −1 where all came together.

    How far apart the ends of one collective are, by the common clock, is how well that clock tells its beginnings
    apart. Of ranks that share the last nanosecond the first is named.
    """
    latest_ns = matched.start_ns.max(axis=0)
    apart_ns = matched.end_ns.max(axis=0) - matched.end_ns.min(axis=0)
    chosen = ranks[matched.start_ns.argmax(axis=0)]
    is_tie = latest_ns - matched.start_ns.min(axis=0) <= np.minimum(apart_ns, LOOSE_NS)
    found: Small = np.where(is_tie, -1, chosen).astype(np.int32)
    return found
