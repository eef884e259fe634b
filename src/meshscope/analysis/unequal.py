"""Runs of different sizes: throughput ranks only those of the same global batch and, in a sweep, of as many ranks.

Ranks alone are no size: one process that drives all GPUs is one rank, beside many that drive one each. Only where one
strategy ran with several numbers of them do they say how much hardware a run had.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar


class Sized(Protocol):
    """A row of the comparison, or what has one's sizes."""

    @property
    def ranks(self) -> int: ...
    @property
    def global_batch(self) -> int: ...
    @property
    def base_strategy(self) -> str: ...


One = TypeVar("One", bound=Sized)


def equals(rows: Sequence[One]) -> tuple[tuple[One, ...], ...]:
    """Those of one size each, sizes by number of ranks, then by batch; within a size in the order given."""
    numbers: dict[str, set[int]] = {}
    for row in rows:
        numbers.setdefault(row.base_strategy, set()).add(row.ranks)
    is_swept = any(len(ranks) > 1 for ranks in numbers.values())
    found: dict[tuple[int, int], list[One]] = {}
    for row in rows:
        found.setdefault((row.ranks if is_swept else 0, row.global_batch), []).append(row)
    return tuple(tuple(found[size]) for size in sorted(found))


def size_words(row: Sized) -> str:
    """``4 ranks, global batch 8``."""
    ranks = "1 rank" if row.ranks == 1 else f"{row.ranks} ranks"
    return f"{ranks}, global batch {row.global_batch}" if row.global_batch else f"{ranks}, batch not recorded"


def apart(names: Sequence[str]) -> str:
    """That runs which are each the only one of their size are ranked against nothing; "" for none of them."""
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]} differs from all others in ranks or global batch: it is not ranked."
    listed = ", ".join(names[:-1]) + " and " + names[-1]
    return f"{listed} differ in ranks or global batch: they are not ranked against each other."
