"""How long a rank may end no step before that is told: while a run goes on, and in what is found of it."""

from __future__ import annotations

from meshscope.units import NS_PER_S

PATIENCE_NS = 10 * NS_PER_S
PATIENCE_STEPS = 20


def patience_ns(usual_ns: float) -> float:
    """Ten seconds, and at least twenty usual steps."""
    return max(PATIENCE_NS, PATIENCE_STEPS * usual_ns)
