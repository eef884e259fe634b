"""The phases of a training step, in its order, and the spans in which autograd evaluates a backward function."""

from __future__ import annotations

import re

FORWARD, BACKWARD, OPTIMIZER, OTHER, UNKNOWN = "forward", "backward", "optimizer", "other", "unknown"
PHASES = (FORWARD, BACKWARD, OPTIMIZER, OTHER, UNKNOWN)

IN_ENGINE = re.compile(r"^autograd::engine::evaluate_function:")
