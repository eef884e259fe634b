"""Runs whose unprofiled steps take so long, and whose profiled ones are made of what a test says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from drawn import run, steps
from made_spans import Made, collective, copy, kernel, window

from meshscope.recording.entries import Ended
from meshscope.run import Run
from meshscope.spans import Window

MS = 1_000_000
APART_MS = 1000


@dataclass(frozen=True)
class Step:
    """One profiled step on two ranks, in ms. Rank 1 computes ``late`` longer before it comes to the collective."""

    compute: float
    exposed: float = 0.0
    idle: float = 0.0
    hidden: float = 0.0
    copied: float = 0.0
    late: float = 0.0
    collective: str = "all_gather"

    @property
    def span(self) -> float:
        return self.compute + self.hidden + self.exposed + self.copied + self.idle


def windows(made: Iterable[Step], **about: Any) -> tuple[Window, ...]:
    """One window for each of two ranks; a step begins every second."""
    made = list(made)
    bounds = [(_ns(number * APART_MS), _ns(number * APART_MS + one.span)) for number, one in enumerate(made)]
    return tuple(
        window([span for number, one in enumerate(made) for span in _spans(one, number * APART_MS, rank)], rank=rank,
               steps=bounds, **({"world": 2} | about))
        for rank in (0, 1)
    )  # fmt: skip


def _spans(one: Step, at: float, rank: int) -> list[Made]:
    begun = at + one.compute + (one.late if rank else 0.0)
    done = at + one.compute + one.hidden + one.exposed
    spans = [kernel(_ns(at), _ns(max(begun, at + one.compute + one.hidden)))]
    if one.hidden or one.exposed:
        spans.append(collective(_ns(begun), _ns(done), kind=one.collective, group="0"))
    if one.copied:
        spans.append(copy(_ns(done), _ns(done + one.copied)))
    return spans


def _ns(ms: float) -> int:
    return round(ms * MS)


def profiled(strategy: str, step_ms: float | Iterable[float], made: Iterable[Step] = (), **about: Any) -> Run:
    """A run that has ended. Its measured steps take ``step_ms`` exactly, however its ranks are spaced."""
    known = [step_ms] * 20 if isinstance(step_ms, int | float) else list(step_ms)
    # Rank 1 ends each step 1 ms after rank 0: see ``drawn.steps``.
    ended = Ended(t_ns=10**12, outcome="done")
    return run([*steps([ms - 1 for ms in known]), ended], windows=windows(made) if made else (), strategy=strategy,
               **about)  # fmt: skip
