"""The list ``collectives`` of ``analyze --json``, and what cannot be said of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from meshscope.analysis.collectives import CollectiveTotal, collectives
from meshscope.run import Run
from meshscope.units import counted

_BY_RANK = ("late_ns", "last")
_OPTIONAL = ("group_size", "is_uneven", *_BY_RANK)


def collectives_json(run: Run) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """The rows, and (what, why) of the numbers that are absent from some of them."""
    rows = collectives(run)
    why = Counter(doubt for row in rows for doubt in _doubts(row))
    of = counted(len(rows), "row")
    return [_row(row) for row in rows], [(what, f"{reason} ({count} of {of})") for (what, reason), count in why.items()]


def _row(found: CollectiveTotal) -> dict[str, Any]:
    known = {name: value for name, value in asdict(found).items() if value is not None}
    said = {name: value for name, value in known.items() if value or name not in _OPTIONAL}
    said["ranks"] = list(found.ranks)
    said |= {name: {str(rank): value for rank, value in said[name].items()} for name in _BY_RANK if name in said}
    return said | ({"size_class": list(found.size_class)} if found.size_class else {})


def _doubts(found: CollectiveTotal) -> list[tuple[str, str]]:
    """Bandwidth is over the transfer alone: the whole time would blame the network for a rank that comes late."""
    if found.transfer_ns is None:
        return [("transfer_ns", "waiting cannot be told apart"), ("algbw_bytes_per_s", "the transfer is not known")]
    if found.size_bytes is None:
        return [("algbw_bytes_per_s", "sizes are not known")]
    if found.algbw_bytes_per_s is None:
        return [("algbw_bytes_per_s", "nothing was moved, or in no time")]
    if found.busbw_bytes_per_s is None:
        why = "no definition for it" if found.group_size > 1 else "how many ranks take part is not known"
        why = "ranks move different amounts in one call" if found.is_uneven else why
        return [("busbw_bytes_per_s", why)]
    return []
