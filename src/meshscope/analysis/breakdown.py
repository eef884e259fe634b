"""Where the time of each rank goes: compute, collective (hidden or exposed), copy, idle."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.run import Run


@dataclass(frozen=True)
class Breakdown:
    """Nanoseconds. ``hidden + exposed = collective`` and ``busy + idle = span``, always.

    ``wait_ns`` is the part spent waiting for peers where the trace tells it apart; None where it cannot.
    """

    span_ns: int = 0
    compute_ns: int = 0
    collective_ns: int = 0
    copy_ns: int = 0
    hidden_ns: int = 0
    exposed_ns: int = 0
    busy_ns: int = 0
    idle_ns: int = 0
    wait_ns: int | None = None


@dataclass(frozen=True)
class RankBreakdown:
    """One rank over all its windows; ``per_step`` is over ``steps`` complete steps, divided by their number.

    ``newest`` is per step over the last window only. ``events_*`` are sums over the windows' counts.
    """

    rank: int
    device: int
    rank_from: str
    device_kind: str
    total: Breakdown
    per_step: Breakdown | None
    newest: Breakdown | None
    steps: tuple[int, ...]
    newest_steps: tuple[int, ...]
    events_read: int
    events_device: int
    dropped: dict[str, int]
    repaired: dict[str, int]


def breakdown(run: Run) -> tuple[RankBreakdown, ...]:
    """Per rank, sorted by rank; empty while no window has been read."""
    raise NotImplementedError
