"""The phases of a training step, in its order."""

from __future__ import annotations

FORWARD, BACKWARD, OPTIMIZER, OTHER, UNKNOWN = "forward", "backward", "optimizer", "other", "unknown"
PHASES = (FORWARD, BACKWARD, OPTIMIZER, OTHER, UNKNOWN)
