"""Each kind of collective: how much of it was hidden under compute."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.run import Run


@dataclass(frozen=True)
class CollectiveOverlap:
    """One collective name over all ranks, per profiled step and rank (a mean over both).

    ``hidden + exposed = busy``. ``size_bytes`` and ``wait_ns`` are None where the trace does not tell.
    ``count`` is over everything profiled: ``steps`` steps of ``ranks`` ranks.
    """

    name: str
    count: int
    ranks: tuple[int, ...]
    steps: int
    busy_ns: float
    hidden_ns: float
    exposed_ns: float
    wait_ns: float | None
    size_bytes: int | None


def overlap(run: Run) -> tuple[CollectiveOverlap, ...]:
    """By exposed time, largest first."""
    raise NotImplementedError
