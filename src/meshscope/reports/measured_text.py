"""What the text report says of memory that a recording measured or a trace recorded: by category, peak, pool."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.memory import CATEGORIES, RankMemory, memory
from meshscope.analysis.peak_place import TRACED, PeakPlace, peak_places
from meshscope.analysis.traced_memory import traced_memory, traced_memory_words
from meshscope.reports.columns import table, wrapped
from meshscope.run import Run
from meshscope.units import UNKNOWN, counted, size

_MOST_RANKS = 16
_MOST_POOLS = 4
_IN = "    "
_SHORT = dict(zip(CATEGORIES, ("params", "grads", "optim", "activ", "temp"), strict=True))


def measured_lines(run: Run) -> list[str]:
    """A row for each rank, then the step and phase of the fullest one's peak, and what the pools hold."""
    ranks = [rank for rank in memory(run) if rank.record is None]
    if not ranks:
        return []
    names = [name for name in CATEGORIES if any(c.name == name for rank in ranks for c in rank.categories)]
    rows = [(str(rank.rank), *(_category(rank, name) for name in names), _peak(rank)) for rank in ranks[:_MOST_RANKS]]
    how = dict.fromkeys(f"{_SHORT[c.name]} {c.how}" for rank in ranks for c in rank.categories if c.name in _SHORT)
    peak_how = dict.fromkeys(f"peak {rank.peak_how}" for rank in ranks if rank.peak_how)
    lines = ["  memory:", *table(("rank", *(_SHORT[name] for name in names), "peak"), rows, indent=_IN)]
    told = [f"({', '.join((*how, *peak_how))})"] if how or peak_how else []
    lines += [*_more(len(ranks)), *(line for words in told for line in wrapped(words, indent=_IN))]
    return [*lines, *_place(run, ranks), *_pools(ranks)]


def traced_lines(run: Run) -> list[str]:
    """What a trace by itself recorded of allocators; a recording has measured more."""
    found = traced_memory(run) if not run.experiment.strategy else ()
    lines = [line for rank in found[:_MOST_RANKS] for line in
             wrapped(f"memory: {traced_memory_words(rank)}", hanging="  ")]  # fmt: skip
    return [*lines, *_more(len(found))]


def _more(count: int) -> list[str]:
    return [f"    … {counted(count - _MOST_RANKS, 'more rank')}"] if count > _MOST_RANKS else []


def _category(rank: RankMemory, name: str) -> str:
    return next((size(category.size_bytes) for category in rank.categories if category.name == name), UNKNOWN)


def _peak(rank: RankMemory) -> str:
    return UNKNOWN if rank.peak_bytes is None else size(rank.peak_bytes)


def _place(run: Run, ranks: Sequence[RankMemory]) -> list[str]:
    places = {place.rank: place for place in peak_places(run)}
    placed = [rank for rank in ranks if rank.rank in places and rank.peak_bytes is not None]
    if not placed:
        return []
    fullest = max(placed, key=lambda rank: (rank.peak_bytes or 0, -rank.rank))
    return wrapped(place_words(places[fullest.rank]), indent=_IN, hanging="  ")


def place_words(place: PeakPlace) -> str:
    """``rank 0's peak fell in step 5, in backward (of the steps whose memory was traced)``."""
    phase = f", in {place.phase}" if place.phase else ""
    among = " (of the steps whose memory was traced)" if place.seen_by == TRACED else ""
    return f"rank {place.rank}'s peak fell in step {place.step}{phase}{among}"


def _pools(ranks: Sequence[RankMemory]) -> list[str]:
    pooled = [rank for rank in ranks if {rank.pool_bytes, rank.limit_bytes, rank.in_use_bytes} != {None}]
    return [line for rank in pooled[:_MOST_POOLS] for line in wrapped(pool_words(rank), indent=_IN, hanging="  ")]


def pool_words(rank: RankMemory) -> str:
    """``rank 0's pool: 7.00 GB taken, 3.00 GB of it in use; it may take 8.00 GB``."""
    words = []
    if rank.pool_bytes is not None:
        used = "" if rank.in_use_bytes is None else f", {size(rank.in_use_bytes)} of it in use"
        words.append(f"{size(rank.pool_bytes)} taken{used}")
    elif rank.in_use_bytes is not None:
        words.append(f"{size(rank.in_use_bytes)} in use between two steps")
    if rank.limit_bytes is not None:
        words.append(f"it may take {size(rank.limit_bytes)}")
    if rank.largest_free_bytes is not None:
        words.append(f"the largest free block has {size(rank.largest_free_bytes)}")
    what = "memory" if rank.pool_bytes is None and rank.limit_bytes is None else "pool"
    return f"rank {rank.rank}'s {what}: {'; '.join(words)}"
