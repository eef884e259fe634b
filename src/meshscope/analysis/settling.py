"""Whether a run that was to go on until its step time is stable became so, in words."""

from __future__ import annotations

import math

from meshscope.run import Run
from meshscope.units import counted, percent


def settling(run: Run) -> str:
    """One sentence; "" for a run that was not asked to, or that has not told yet."""
    if not run.settled:
        return ""
    last = run.settled[-1]
    limit = run.experiment.planned_steps
    if last.interval_frac is None or not math.isfinite(last.interval_frac):
        return (
            f"{run.name} was to go on until its step time is stable: {counted(last.counted, 'unprofiled step')} past "
            f"warm-up of {last.steps} are too few to tell."
        )
    wide = f"the 95 % interval of its median is {percent(last.interval_frac)} of it wide"
    of = f"over {counted(last.counted, 'unprofiled step')}"
    if last.is_reached:
        at_most = f" of at most {limit}" if last.steps < limit else ""
        return f"{run.name}'s step time is stable after {last.steps}{at_most} steps: {wide}, {of}."
    wanted = percent(run.experiment.stable_frac)
    return f"{run.name}'s step time is not stable after {last.steps} steps: {wide}, {of}, and not below {wanted}."
