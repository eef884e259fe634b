"""What XLA is told of collectives between CPU devices whose participants do not come."""

from __future__ import annotations

WARN_S = 5
_BEYOND_S = 60
_KNOWN = "0.10."
"""XLA aborts on a flag that it does not know, so only versions that were tried are given any."""


def waiting_flags(jaxlib: str, patience_s: float) -> str:
    """XLA says which collective it waits in before anybody here loses patience, and aborts only after that."""
    if not jaxlib.startswith(_KNOWN):
        return ""
    abort_s = round(patience_s) + _BEYOND_S
    return (
        f"--xla_cpu_collective_call_warn_stuck_timeout_seconds={WARN_S} "
        f"--xla_cpu_collective_call_terminate_timeout_seconds={abort_s}"
    )
