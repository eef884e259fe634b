"""The memory of a run that somebody finished and did not describe in full."""

from __future__ import annotations

import math
from dataclasses import replace

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.cluster import Cluster
from meshscope.advisor.figures import Figure
from meshscope.advisor.forecast import Fit, MemoryForecast
from meshscope.advisor.memory.constants import ASSUMED_SPREAD_FRAC
from meshscope.advisor.memory.device import fit
from meshscope.advisor.memory.forecasting import memory


def memory_unstated(
    architecture: Architecture, candidate: Candidate, cluster: Cluster, assumed: tuple[str, ...]
) -> MemoryForecast:
    """As `memory`, with ``assumed`` (what the run does not state, in the words of `published`) in the intervals.

    Where nobody says what is computed again, it is all of it at least and nothing at most; and as the run did run, it
    is more than the candidate has where that would not fit. Raises as `memory` does.
    """
    found = memory(architecture, candidate, cluster)
    if "checkpointing" in assumed:
        most = memory(architecture, replace(candidate, checkpointing="none"), cluster)
        least = memory(architecture, replace(candidate, checkpointing="full"), cluster)
        found = _between(least if found.fit is Fit.DOES_NOT else found, least, most)
    doubt = math.hypot(*(ASSUMED_SPREAD_FRAC.get(each, 0.0) for each in assumed))
    return _judged(_widened(found, doubt) if doubt else found, candidate, cluster)


def _between(found: MemoryForecast, least: MemoryForecast, most: MemoryForecast) -> MemoryForecast:
    def bounded(own: Figure, below: Figure, above: Figure) -> Figure:
        low, high = min(own.low, below.low), max(own.high, above.high)
        return Figure(own.value, low, high, "assumed", "nobody says what is computed again")

    return replace(
        found,
        allocated=bounded(found.allocated, least.allocated, most.allocated),
        reserved=bounded(found.reserved, least.reserved, most.reserved),
        used=bounded(found.used, least.used, most.used),
    )


def _widened(found: MemoryForecast, doubt: float) -> MemoryForecast:
    def wide(own: Figure) -> Figure:
        above, below = math.hypot(own.high / own.value - 1, doubt), math.hypot(own.value / own.low - 1, doubt)
        return replace(own, low=own.value / (1 + below), high=own.value * (1 + above), source="assumed")

    return replace(found, allocated=wide(found.allocated), reserved=wide(found.reserved), used=wide(found.used))


def _judged(found: MemoryForecast, candidate: Candidate, cluster: Cluster) -> MemoryForecast:
    return replace(found, fit=fit(found.used, candidate, cluster))
