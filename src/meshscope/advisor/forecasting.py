"""Memory and time of one candidate together; what either model does not cover is said, not guessed."""

from __future__ import annotations

from dataclasses import replace

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.forecast import Forecast
from meshscope.advisor.memory import memory
from meshscope.advisor.multipliers import NEUTRAL, Multipliers
from meshscope.advisor.timing import timing


def forecast(
    architecture: Architecture, candidate: Candidate, cluster: Cluster, multipliers: Multipliers = NEUTRAL
) -> Forecast:
    """Both, as far as they are covered."""
    return timed(memory_alone(architecture, candidate, cluster), architecture, candidate, cluster, multipliers)


def memory_alone(architecture: Architecture, candidate: Candidate, cluster: Cluster) -> Forecast:
    """Without the time, which takes longer to compute: `timed` adds it."""
    try:
        return Forecast(memory=memory(architecture, candidate, cluster), time=None)
    except NotCovered as uncovered:
        return Forecast(memory=None, time=None, cannot_say=(f"memory: {uncovered.reason}",))


def timed(
    found: Forecast,
    architecture: Architecture,
    candidate: Candidate,
    cluster: Cluster,
    multipliers: Multipliers = NEUTRAL,
) -> Forecast:
    """The forecast with the time of a step, or with the reason why there is none."""
    try:
        return replace(found, time=timing(architecture, candidate, cluster, multipliers))
    except NotCovered as uncovered:
        return replace(found, cannot_say=(*found.cannot_say, f"time: {uncovered.reason}"))
