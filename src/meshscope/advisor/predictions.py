"""A table of published runs in, a table of predictions out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meshscope.advisor.cells import text
from meshscope.advisor.constants import ASSUMED_SPREAD_FRAC
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import MemoryForecast
from meshscope.advisor.memory import memory_unstated
from meshscope.advisor.plausibility import is_impossible
from meshscope.advisor.published import Published, published
from meshscope.advisor.timing import timing

GIB = 2**30


@dataclass(frozen=True)
class Predicted:
    """Of one row; None where it is not covered, and ``cannot_say`` why. ``impossible`` is what the row claims to have
    measured: it is the only thing here that its measured columns are read for. ``assumed``: what it does not state."""

    run_id: str
    source: str
    step_time_s: Figure | None
    memory: MemoryForecast | None
    impossible: bool
    cannot_say: str = ""
    assumed: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The row of the answer."""
        time, held = self.step_time_s, self.memory
        return {
            "run_id": self.run_id,
            "step_time_s": time.value if time else None,
            "step_time_low_s": time.low if time else None,
            "step_time_high_s": time.high if time else None,
            "mem_allocated_gib": held.allocated.value / GIB if held else None,
            "mem_reserved_gib": held.reserved.value / GIB if held else None,
            "fits": str(held.fit) if held else None,
            "impossible": self.impossible,
            "cannot_say": self.cannot_say or None,
        }


def predictions(rows: Iterable[Mapping[str, str]], folder: Path | None = None) -> tuple[Predicted, ...]:
    """Of every row, in order. ``folder`` has the user's own devices."""
    return tuple(prediction(row, folder) for row in rows)


def prediction(row: Mapping[str, str], folder: Path | None = None) -> Predicted:
    """Of one row."""
    run_id, source = text(row, "run_id"), text(row, "source_key")
    impossible = is_impossible(row, folder)
    try:
        asked = published(row, folder)
    except NotCovered as refused:
        return Predicted(run_id, source, None, None, impossible, refused.reason)
    time, why_no_time = _time(asked)
    held, why_no_memory = _memory(asked)
    reasons = "; ".join(dict.fromkeys(each for each in (why_no_time, why_no_memory) if each))
    return Predicted(run_id, source, time, held, impossible, reasons, asked.assumed)


def _time(asked: Published) -> tuple[Figure | None, str]:
    try:
        step_s = timing(asked.architecture, asked.candidate, asked.cluster).step_s
    except NotCovered as refused:
        return None, refused.reason
    return widened(step_s, asked.assumed), ""


def _memory(asked: Published) -> tuple[MemoryForecast | None, str]:
    try:
        return memory_unstated(asked.architecture, asked.candidate, asked.cluster, asked.assumed), ""
    except NotCovered as refused:
        return None, refused.reason


def widened(step_s: Figure, assumed: tuple[str, ...]) -> Figure:
    """With what had to be assumed in the interval: independent doubts add up as squares, in logarithms."""
    doubts = [ASSUMED_SPREAD_FRAC.get(each, 0.0) for each in assumed]
    if not any(doubts):
        return step_s
    own = step_s.high / step_s.value - 1.0
    wide = 1.0 + (own**2 + sum(doubt**2 for doubt in doubts)) ** 0.5
    return Figure(step_s.value, step_s.value / wide, step_s.value * wide, "assumed", f"assumed: {', '.join(assumed)}")
