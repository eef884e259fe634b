"""How far a run is: what it does now, step n of m, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshscope.recording.entries import Phase
from meshscope.run import Run
from meshscope.units import NS_PER_S


@dataclass(frozen=True)
class Progress:
    """``state``: done, failed, stopped or lost; else a phase of ``recording.entries.Phase`` (launching, training, …).

    ``lost``: no Ended entry, and nothing was written for long enough that the supervisor must be gone.
    ``step`` is how many steps all ranks have finished, ``since_ns`` when the state began. ``why`` and ``rank`` tell a
    failure. ``next_window_steps`` is how many steps until the next window starts (None when none is asked).
    ``window_steps`` are the steps of the newest window, ``window_age_ns`` its age. ``is_uncounted``: a job that was
    attached to, whose steps nobody counts.
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
    is_uncounted: bool = False


_WAITED_FOR = ("stopping profiler", "launching", "importing", "compiling", "warming profiler", "profiling", "training",
               "ending")  # fmt: skip


def progress(run: Run) -> Progress:
    """Several ranks are never quite at the same place: what the others wait for is what the run does."""
    step = _finished(run)
    phase, since_ns = _phase(run)
    state, why, rank = phase.phase if phase else "launching", "", -1
    if run.ended is not None:
        state, why, rank, since_ns = run.ended.outcome, run.ended.why, run.ended.rank, run.ended.t_ns
    elif run.is_lost:
        silent_s = (run.now_ns - run.last_entry_ns) / NS_PER_S
        state, since_ns = "lost", run.last_entry_ns
        why = f"nothing was written for {silent_s:.0f} s and there is no last entry: the supervisor is gone"
    window = max(run.traces, key=lambda entry: (entry.end_step, entry.t_ns), default=None)
    asked = [entry.first_step for entry in run.windows_asked if entry.first_step >= step]
    return Progress(
        state=state,
        step=step,
        planned=run.experiment.planned_steps,
        detail=phase.detail if phase and state == phase.phase else "",
        why=why,
        rank=rank,
        since_ns=since_ns,
        next_window_steps=min(asked) - step if asked and run.ended is None else None,
        window_steps=tuple(range(window.first_step, window.end_step)) if window else (),
        window_age_ns=run.now_ns - window.t_ns if window else None,
        is_uncounted=run.experiment.is_attached,
    )


def _finished(run: Run) -> int:
    """How many steps every rank has finished."""
    steps = run.steps
    if not len(steps):
        return 0
    is_last = np.append(steps.rank[1:] != steps.rank[:-1], True)  # sorted by rank, then step
    return int(steps.step[is_last].min()) + 1


def _phase(run: Run) -> tuple[Phase | None, int]:
    """The phase that the others wait for, and since when; ranks say more than the supervisor (rank −1)."""
    last: dict[int, Phase] = {}
    since: dict[int, int] = {}
    for entry in run.phases:
        if entry.rank not in last or last[entry.rank].phase != entry.phase:
            since[entry.rank] = entry.t_ns
        last[entry.rank] = entry
    speaking = [rank for rank in last if rank >= 0] or list(last)
    if not speaking:
        return None, 0
    rank = min(speaking, key=lambda rank: (_place(last[rank].phase), rank))
    return last[rank], since[rank]


def _place(phase: str) -> int:
    return _WAITED_FOR.index(phase) if phase in _WAITED_FOR else len(_WAITED_FOR)
