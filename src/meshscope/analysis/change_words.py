"""What the numbers of a comparison are called, on screens and in text."""

from __future__ import annotations

NAMES = {
    "step_time": "step time",
    "throughput": "samples/s",
    "memory": "peak memory",
    "compute": "computing",
    "collective": "communicating",
    "exposed": "of it exposed",
}
"""What rows are called: computing and communicating overlap, and what they share is in both."""

OF_A_STEP = ("step_time", "throughput", "memory")
"""What no profiler touched."""

PROFILED = "of a profiled step, with the profiler's cost (computing beside communicating counts in both):"
