"""What flight recorders show, in sentences that the report and the screen share."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.flight import Mismatch, Unfinished
from meshscope.units import UNKNOWN, ranges

_MOST_RANKS = 4


def unfinished_words(one: Unfinished) -> str:
    """Who is in a call, who has not come, and what those did last."""
    said = f"not done: {one.collective} {one.sequence} of group {_group(one.group, one.description)}: "
    said += f"{ranks_words(one.waiting)} had called it and not completed it when dumped"
    if one.absent:
        last = ", ".join(f"rank {rank}: {one.last[rank]}" for rank in one.absent[:_MOST_RANKS])
        said += f"; {ranks_words(one.absent)} had not called it (newest there: {last})"
    if one.done:
        said += f"; {ranks_words(one.done)} had completed it"
    if one.unknown:
        said += f"; of {ranks_words(one.unknown)} there is no dump"
    return said + (f"; called at {one.where}" if one.where else "")


def mismatch_words(one: Mismatch) -> str:
    """Which ranks call what under one number."""
    calls = "; ".join(f"{ranks_words(ranks)}: {what}" for what, ranks in one.calls.items())
    return f"ranks differ in the {one.of} of call {one.sequence} of group {_group(one.group, one.description)}: {calls}"


def ranks_words(ranks: Sequence[int]) -> str:
    """``ranks 0–3, 7``."""
    return f"rank{'s' if len(ranks) > 1 else ''} {ranges(ranks)}"


def _group(name: str, description: str) -> str:
    return f"{name} ({description})" if description and description != name else name or UNKNOWN
