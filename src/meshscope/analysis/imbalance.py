"""Memory that differs between ranks: the fullest one decides what fits, and the others' room is wasted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshscope.analysis.memory import memory
from meshscope.run import Run
from meshscope.units import ratio

MATERIAL_FRAC = 0.1


@dataclass(frozen=True)
class MemoryImbalance:
    """Peaks of ``ranks`` ranks; ``frac`` is how much more the fullest has than the median rank, as a share of that.

    ``is_material``: by a tenth or more. ``how`` says how the fullest rank's peak was come by.
    """

    ranks: int
    fullest: int
    peak_bytes: int
    median_bytes: float
    emptiest: int
    least_bytes: int
    frac: float
    how: str

    @property
    def is_material(self) -> bool:
        return self.frac >= MATERIAL_FRAC


def memory_imbalance(run: Run) -> MemoryImbalance | None:
    """None where the peaks of fewer than two ranks are known."""
    known = _told(run) or _allocator(run)
    if len(known) < 2:
        return None
    fullest = min(known, key=lambda rank: (-known[rank][0], rank))
    emptiest = min(known, key=lambda rank: (known[rank][0], rank))
    peak_bytes, how = known[fullest]
    median_bytes = float(np.median([peak for peak, _ in known.values()]))
    return MemoryImbalance(
        ranks=len(known),
        fullest=fullest,
        peak_bytes=peak_bytes,
        median_bytes=median_bytes,
        emptiest=emptiest,
        least_bytes=known[emptiest][0],
        frac=ratio(peak_bytes - median_bytes, median_bytes),
        how=how,
    )


def _told(run: Run) -> dict[int, tuple[int, str]]:
    """The peak of each rank, on its fullest device where a file tells of several."""
    known: dict[int, tuple[int, str]] = {}
    for rank in memory(run):
        if rank.peak_bytes is not None and rank.peak_bytes > known.get(rank.rank, (-1, ""))[0]:
            known[rank.rank] = (rank.peak_bytes, rank.peak_how)
    return known


def _allocator(run: Run) -> dict[int, tuple[int, str]]:
    """The largest peak that any step of a rank reported."""
    table = run.steps
    is_told = table.peak_bytes >= 0
    rank, peak_bytes = table.rank[is_told], table.peak_bytes[is_told]
    if not len(rank):
        return {}
    starts = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))  # sorted by rank
    most = np.maximum.reduceat(peak_bytes, starts)
    return {rank: (peak, "measured") for rank, peak in zip(rank[starts].tolist(), most.tolist(), strict=True)}
