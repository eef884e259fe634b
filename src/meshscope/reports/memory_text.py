"""What the text report says of the headroom, and of what was alive at the peak."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from meshscope.analysis.allocations import Group, Holdings, holdings
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.headroom import Headroom, headroom
from meshscope.records import MemoryRecord
from meshscope.reports.columns import room, table, wrapped
from meshscope.run import Run
from meshscope.units import counted, percent, size

_MOST_RANKS = 4
_MOST_SITES = 8
_MOST_SINGLES = 3
_FIGURES_WIDTH = 36
_IN = "    "


def headroom_lines(run: Run) -> list[str]:
    """Those with the least left."""
    found = sorted(headroom(run), key=lambda one: (one.frac, one.ranks))
    lines = [line for one in found[:_MOST_RANKS] for line in wrapped(headroom_words(one), hanging="  ")]
    left = len(found) - _MOST_RANKS
    return [*lines, *(wrapped(f"{counted(left, 'rank')} more had a larger share left", indent=_IN) if left > 0 else [])]


def headroom_words(one: Headroom) -> str:
    """How much was left, as a share of what, and who held the rest."""
    words = f"headroom of {ranks_words(list(one.ranks))}: {size(one.free_bytes)} left at the fullest moment, "
    words += f"{percent(one.frac)} of {one.of} ({size(one.capacity_bytes)})"
    held = [] if one.held_bytes is None else [f"the allocator held {size(one.held_bytes)}"]
    if one.others_bytes is not None:
        held.append(f"contexts and other processes {size(one.others_bytes)}")
    elif one.held_bytes is not None and not one.of.startswith("the most"):
        held.append("what others held is not known")
    return f"{words}; {', '.join(held)}" if held else words


def alive_lines(record: MemoryRecord, whose: str) -> list[str]:
    """What was alive at the peak: a row for each site, the classes of size, and the largest single ones."""
    if record.alive is None:
        return []
    found = holdings(record.alive, _MOST_SINGLES)
    if not found.count:
        return []
    lines = wrapped(f"{whose}: {heading(found)}", indent=_IN, hanging="  ")
    lines += table(("asked for by", "allocations", "bytes", "share"), _rows(found.sites), indent=_IN)
    left = found.sites[_MOST_SITES:]
    if left:
        rest = sum(group.size_bytes for group in left)
        lines += wrapped(f"… {counted(len(left), 'more site')}: {size(rest)}", indent=_IN)
    for words in (_listed("by size", found.classes), _listed("by part of the step", found.parts), _singles(found)):
        lines += wrapped(words, indent=_IN, hanging="  ")
    return lines


def heading(found: Holdings) -> str:
    """Which moment, how much, and what share of it has a stack."""
    moment = {"peak": "alive at the peak", "end": "alive at the end (no history tells the peak)"}
    words = f"{moment.get(found.moment, found.moment)}: {counted(found.count, 'allocation')}, {size(found.total_bytes)}"
    if found.rounding_bytes:
        words += f" with {size(found.rounding_bytes)} of rounding"
    return f"{words}; shares are of that"


def _rows(sites: Sequence[Group]) -> list[tuple[str, ...]]:
    width = max(room() - _FIGURES_WIDTH, 12)
    return [
        (_clipped(group.name, width), str(group.count), size(group.size_bytes), percent(group.frac))
        for group in sites[:_MOST_SITES]
    ]


def _clipped(text: str, width: int) -> str:
    """A path gives way at its beginning: its end tells more."""
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]


def _listed(what: str, groups: Iterable[Group]) -> str:
    return f"{what}: {', '.join(f'{group.name} {size(group.size_bytes)} ({group.count})' for group in groups)}"


def _singles(found: Holdings) -> str:
    return f"largest: {', '.join(f'{size(group.size_bytes)} ({group.name})' for group in found.largest)}"
