"""What is known of a rank's waiting where not all of it is: some of its calls have no counterpart on every rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshscope.analysis.exposure import waited
from meshscope.analysis.in_steps import steps_of
from meshscope.analysis.waiting import WindowWaits, meets, waiting
from meshscope.intervals import Intervals
from meshscope.run import Run
from meshscope.spans import Kind, Window


@dataclass(frozen=True)
class KnownWait:
    """One rank waits at least ``least_ns`` of its mean step (of its windows where no rank of the run has a step).

    That is by the ``matched`` of its ``calls`` collective spans; what the others wait is not known.
    """

    rank: int
    least_ns: float
    matched: int
    calls: int


def known_waits(run: Run) -> dict[int, KnownWait]:
    """By rank, of ranks of which some calls are matched and some are not."""
    found = waiting(run)
    told = [(window, waits) for window, waits in found.windows.items() if not meets(window)]
    has_steps = any(window.steps for window in run.windows)
    by_rank: dict[int, list[tuple[Window, WindowWaits]]] = {}
    for window, waits in told:
        by_rank.setdefault(window.rank, []).append((window, waits))
    each = (_rank(rank, mine, has_steps=has_steps) for rank, mine in by_rank.items())
    return {one.rank: one for one in each if 0 < one.matched < one.calls}


def _rank(rank: int, mine: list[tuple[Window, WindowWaits]], *, has_steps: bool) -> KnownWait:
    steps = max(sum(len(window.steps) for window, _ in mine), 1) if has_steps else 1
    return KnownWait(
        rank=rank,
        least_ns=sum(_inside(window, waits, has_steps=has_steps).total_ns for window, waits in mine) / steps,
        matched=sum(len(waits.row) for _, waits in mine),
        calls=sum(int(np.count_nonzero(window.spans.kind == Kind.COLLECTIVE)) for window, _ in mine),
    )


def _inside(window: Window, waits: WindowWaits, *, has_steps: bool) -> Intervals:
    found = waited(window, waits)
    return found & steps_of(window) if has_steps else found
