"""A part of a device's memory: what it is, how many bytes, and the arithmetic in words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from meshscope.advisor.figures import Figure, Source
from meshscope.advisor.forecast import Term
from meshscope.advisor.memory.constants import GIB, MIB

Category = Literal["parameters", "gradients", "optimizer", "activations", "logits", "communication", "temporaries"]
CATEGORIES: tuple[Category, ...] = (
    "parameters", "gradients", "optimizer", "activations", "logits", "communication", "temporaries"
)  # fmt: skip

Pool = Literal["main", "gather", "reduce"]
"""The stream that a tensor was made on. The allocator gives no stream what another one freed, so what each of them
needed at its widest adds up (torch, CUDACachingAllocator.cpp: blocks are found by stream)."""


@dataclass(frozen=True)
class Part:
    """``size_bytes`` of ``name``. The true size lies between ``least_frac`` and ``most_frac`` of it in 90 % of cases:
    what is counted from shapes is sure, what hangs on how a framework is written is not. ``spare_bytes`` more may be
    there that usually is not."""

    category: Category
    name: str
    size_bytes: float
    arithmetic: str
    least_frac: float = 1.0
    most_frac: float = 1.0
    spare_bytes: float = 0.0
    source: Source = "analytic"
    pool: Pool = "main"

    @property
    def figure(self) -> Figure:
        low, high = self.size_bytes * self.least_frac, self.size_bytes * self.most_frac + self.spare_bytes
        return Figure(self.size_bytes, low, high, self.source, self.arithmetic)

    @property
    def term(self) -> Term:
        return Term(f"{self.category}: {self.name}", self.figure, 1.0, self.arithmetic)


def total(parts: Iterable[Part], where: str) -> Figure:
    """The parts together, in bytes. Their errors are taken as independent of one another."""
    figures = [part.figure for part in parts]
    return summed(figures, "analytic", where)


def summed(figures: list[Figure], source: Source, where: str) -> Figure:
    """Values add; half widths add in squares, each side for itself."""
    value = sum(figure.value for figure in figures)
    below = math.hypot(*(figure.value - figure.low for figure in figures))
    above = math.hypot(*(figure.high - figure.value for figure in figures))
    return Figure(value, value - below, value + above, source, where)


def said(size_bytes: float) -> str:
    """A size in words, in GiB or MiB."""
    if size_bytes >= 0.1 * GIB:
        return f"{size_bytes / GIB:.2f} GiB"
    return f"{size_bytes / MIB:.2f} MiB"


def number(count: float) -> str:
    """A count in words: 7.50 B, 124 M, 4096."""
    for scale, letter in ((1e12, " T"), (1e9, " B"), (1e6, " M")):
        if abs(count) >= scale:
            return f"{count / scale:.3g}{letter}"
    return f"{count:.6g}"
