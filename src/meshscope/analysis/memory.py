"""Memory by category and rank, and the peak."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.run import Run

CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "temporaries")


@dataclass(frozen=True)
class Category:
    """``how``: exact, measured, derived or compiler (see ``recording.entries.MemoryMeasured``)."""

    name: str
    size_bytes: int
    how: str


@dataclass(frozen=True)
class RankMemory:
    """The newest measurement of one rank. ``peak_bytes``, ``pool_bytes``, ``in_use_bytes`` are None where unknown.

    ``peak_how`` says how the peak was come by; ``source`` names the instrument in words.
    """

    rank: int
    device: int
    step: int
    source: str
    categories: tuple[Category, ...]
    peak_bytes: int | None
    peak_how: str
    pool_bytes: int | None
    in_use_bytes: int | None


def memory(run: Run) -> tuple[RankMemory, ...]:
    """By rank; empty while nothing was measured."""
    raise NotImplementedError
