"""What has to be known of a run that was predicted and never ran, in the words that every report and screen uses.

A simulated run has one step. It stands for itself: there is no warm-up, no profiler and no noise in it, and how far the
prediction may be off is told by its own interval instead of by how steps scatter.
"""

from __future__ import annotations

from collections.abc import Iterable

from meshscope.run import Run
from meshscope.units import milliseconds, reach

SIMULATED = "simulated"
MARK = "simulated, not measured"
NOT_RANKED = "is simulated, and the others were measured"
NOTHING_RAN = "nothing ran that could have it: the step is simulated"


def simulation_note(run: Run) -> str:
    """One or two sentences; "" for what ran."""
    here = run.experiment.simulated
    if here is None:
        return ""
    on = f" for {here.cluster}" if here.cluster else ""
    by = f"{here.by} (constants {here.constants})" if here.constants else here.by
    said = f"Simulated by {by}{on}: nothing ran, and no number here was measured."
    if here.step_low_ns:
        said += f" The step is expected to take {predicted(here.step_low_ns, here.step_high_ns)} (90 %)."
    if here.stands_for:
        each = "; ".join(f"rank {rank} for ranks {ranks}" for rank, ranks in here.stands_for.items())
        said += f" Ranks that do the same are drawn once: {each}."
    return said


def predicted(low_ns: float, high_ns: float) -> str:
    """``1 210 to 1 340 ms``."""
    return f"{reach(milliseconds(low_ns), milliseconds(high_ns))} ms"


def is_any_simulated(runs: Iterable[Run]) -> bool:
    return any(run.is_simulated for run in runs)


def are_all_simulated(runs: Iterable[Run]) -> bool:
    """Whether there are runs, and each of them was predicted."""
    found = [run.is_simulated for run in runs]
    return bool(found) and all(found)
