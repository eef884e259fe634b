"""Memory of a candidate, counted from the model's shape.

Every tensor that is alive at some moment of a step is a `Part` with its arithmetic in words. A step has four moments at
which memory can be at its peak (``state.MOMENTS``); the largest sum over moments and pipeline stages is the forecast.
What the framework is known to keep beyond the mathematics is in ``habits``.
"""

from __future__ import annotations

from meshscope.advisor.memory.forecasting import memory, terms
from meshscope.advisor.memory.unstated import memory_unstated

__all__ = ["memory", "memory_unstated", "terms"]
