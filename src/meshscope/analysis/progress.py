"""How far a run is: what it does now, step n of m, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.run import Run


@dataclass(frozen=True)
class Progress:
    """``state``: launching, compiling, training, profiling, stopping profiler, done, failed, stopped or lost.

    ``lost``: no Ended entry, and nothing was written for long enough that the supervisor must be gone.
    ``why`` and ``rank`` tell a failure. ``next_window_steps`` is how many steps until the next window starts
    (None when none is asked). ``window_steps`` are the steps of the newest window, ``window_age_ns`` its age.
    """

    state: str
    step: int
    planned: int
    detail: str = ""
    why: str = ""
    rank: int = -1
    since_ns: int = 0
    next_window_steps: int | None = None
    window_steps: tuple[int, ...] = ()
    window_age_ns: int | None = None


def progress(run: Run) -> Progress:
    raise NotImplementedError
