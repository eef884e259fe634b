"""Which ranks are shown, and in which order: by number, or those first that are worst on the screen."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from meshscope.analysis.lanes import Lanes
from meshscope.errors import InputError
from meshscope.ui.timeline.state import State

RANK, LATE, EXPOSED, BUSY = SORTS = ("rank", "late", "exposed", "busy")
_BUSY = ("compute", "copy", "exposed", "wait")


def score_ns(lanes: Lanes, state: State, sort: str, rank: int) -> int:
    """How late a rank comes to its collectives on the screen, what of them nothing hides, or how long it is busy."""
    start_ns, stop_ns = state.view.start_ns, state.view.stop_ns
    if sort == LATE:
        return lanes.late[rank].within(start_ns, stop_ns)
    if sort == EXPOSED:
        return lanes.exposed[rank].within(start_ns, stop_ns)
    return lanes.folded[rank].covered_ns(start_ns, stop_ns, *_BUSY) if sort == BUSY else 0


def ordered(lanes: Lanes, state: State, sort: str, ranks: Iterable[int]) -> tuple[int, ...]:
    scores = {rank: score_ns(lanes, state, sort, rank) for rank in ranks}
    return tuple(sorted(scores, key=lambda rank: (-scores[rank], rank)))


def sorted_by(lanes: Lanes, state: State, sort: str) -> State:
    return replace(state, sort=sort, shown=ordered(lanes, state, sort, state.shown))


def resorted(lanes: Lanes, state: State) -> State:
    """In the next order of all."""
    return sorted_by(lanes, state, SORTS[(SORTS.index(state.sort) + 1) % len(SORTS)])


def filtered(lanes: Lanes, state: State, text: str) -> State:
    """Only some ranks, ``0,4-7``; all of them where the text is empty. Raises InputError."""
    chosen = parse_ranks(text, lanes.ranks) if text.strip() else lanes.ranks
    rank = state.rank if state.rank in chosen else chosen[0]
    pinned = state.pinned if rank == state.rank else None
    shown = ordered(lanes, state, state.sort, chosen)
    return replace(state, shown=shown, only=text.strip(), rank=rank, pinned=pinned)


def unknown(text: str, known: Iterable[int]) -> str:
    """What of a filter names no rank there is, ``9, 12–15``; "" where every rank that it names is there.

    Raises nothing: what is no rank at all is for :func:`parse_ranks` to refuse.
    """
    known = sorted(known)
    missing = []
    for part in re.findall(r"\d+(?:\s*[-–]\s*\d+)?", text):
        low, _, high = (end.strip() for end in re.sub("[-–]", "-", part).partition("-"))
        first, last = int(low), int(high or low)
        inside = [rank for rank in known if first <= rank <= last]
        first = max(inside) + 1 if inside else first
        if first <= last:
            missing.append(str(first) if first == last else f"{first}–{last}")
    return ", ".join(missing)


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
