"""How far hosts are ahead of their devices, and so by what the steps of each device are told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.device_steps import MARKS, device_steps
from meshscope.analysis.parts import per_run
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import counted, duration, ranges

LEAST_FRAC = 0.01
"""Of a step: a device that is closer behind its host has the host's steps, but for the latency of a launch."""


@dataclass(frozen=True)
class HostAhead:
    """One rank over its windows: its host is ahead of its device by ``ahead_ns`` at most, at the bounds of steps.

    ``by`` is what tells its device's steps apart (see :class:`meshscope.analysis.device_steps.DeviceSteps`), and
    ``step_ns`` how long they last in the mean.
    """

    rank: int
    by: str
    ahead_ns: int
    step_ns: float

    @property
    def is_far(self) -> bool:
        return self.ahead_ns > LEAST_FRAC * self.step_ns


@per_run
def hosts_ahead(run: Run) -> tuple[HostAhead, ...]:
    """Sorted by rank; absent are ranks without a complete step, and those whose host and device have one clock."""
    ranks: dict[int, list[Window]] = {}
    for window in run.windows:
        if device_steps(window).by:
            ranks.setdefault(window.rank, []).append(window)
    return tuple(_ahead(rank, ranks[rank]) for rank in sorted(ranks))


def _ahead(rank: int, windows: Sequence[Window]) -> HostAhead:
    found = [device_steps(window) for window in windows]
    lengths_ns = np.concatenate([np.diff(one.step_ns)[:, 0] for one in found])
    ways = {one.by for one in found}
    return HostAhead(
        rank=rank,
        by=MARKS if MARKS in ways else found[0].by,
        ahead_ns=max(one.ahead_ns for one in found),
        step_ns=float(lengths_ns.mean()) if len(lengths_ns) else math.nan,
    )


def ahead_words(run: Run) -> str:
    """``steps are the devices': hosts are ahead of them by 37.9 ms at most (rank 0)``; "" where no host is."""
    far = [one for one in hosts_ahead(run) if one.is_far]
    if not far:
        return ""
    most = max(far, key=lambda one: one.ahead_ns)
    whose, it = ("the devices'", "them") if len(far) > 1 else ("the device's", "it")
    named = f"rank {most.rank}" if len(far) > 1 else f"rank {most.rank}'s"
    host = f"{counted(len(far), 'host')} are" if len(far) > 1 else f"{named} host is"
    said = f"steps are {whose}, not between the host's marks: {host} ahead of {it} by up to {duration(most.ahead_ns)}"
    return f"{said} ({named})" if len(far) > 1 else said


def untold(run: Run) -> tuple[tuple[str, str], ...]:
    """Why steps are between their hosts' marks although devices may be behind these."""
    ranks = [one.rank for one in hosts_ahead(run) if one.by == MARKS]
    if not ranks:
        return ()
    whose = f"{'ranks' if len(ranks) > 1 else 'rank'} {ranges(ranks)}"
    why = "no launch tells when the device came to a step, so steps are between the host's marks"
    return (("device_steps", f"{whose}: {why}"),)
