"""What of a run was profiled: what panels say that draw traces and have none yet, or none that tells."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from meshscope.analysis.progress import progress
from meshscope.ui.panel import Fresh
from meshscope.ui.scene import Scene
from meshscope.ui.words import steps_of
from meshscope.units import counted


@dataclass(frozen=True)
class Profiled:
    """``steps`` are those that lie wholly in a window; ``why`` says why windows hold no device work, "" where any does.

    ``at_unix_ns`` is when the newest window ended, None where nobody knows.
    """

    is_asked: bool = False
    has_windows: bool = False
    steps: tuple[int, ...] = ()
    at_unix_ns: int | None = None
    why: str = ""
    has_ended: bool = False
    is_live: bool = False
    is_partial: bool = False
    next_window_steps: int | None = None

    @property
    def fresh(self) -> Fresh:
        return Fresh(of=steps_of(self.steps) or ("all that was traced" if self.has_windows else ""),
                     at_unix_ns=self.at_unix_ns)  # fmt: skip


UNASKED = Profiled()


def profiled(scene: Scene) -> Profiled:
    """Of the run that is looked at."""
    run = scene.run
    if run is None:
        return Profiled()
    newest = max((window.end_ns for window in run.windows), default=None)
    at = newest + run.experiment.t0_unix_ns if newest is not None and scene.is_recorded else None
    working = any(window.device_kind != "none" for window in run.windows)
    reasons = dict.fromkeys(why for window in run.windows for what, why in window.cannot_say if what != "wait_ns")
    return Profiled(
        is_asked=True,
        has_windows=bool(run.windows),
        steps=tuple(sorted({step for window in run.windows for step in window.steps})),
        at_unix_ns=at,
        why="" if working else "; ".join(reasons),
        has_ended=run.ended is not None,
        is_live=scene.stance.is_live,
        is_partial=bool(scene.caveat),
        next_window_steps=progress(run).next_window_steps,
    )


def empty(found: Profiled, promise: str, *, what: str, fills: str) -> str:
    """Why there is nothing to draw: ``what`` is not known, or ``fills`` the panel once something is profiled."""
    if not found.is_asked:
        return promise
    if found.is_partial:
        return f"Nothing in what is read so far tells {what}."
    if found.has_windows:
        return f"Cannot say {what}: {found.why or 'the trace holds no device work'}."
    if found.has_ended:
        return f"Nothing was profiled in this run, so it is not known {what}."
    when = f", in {counted(found.next_window_steps, 'step')}" if found.next_window_steps and found.is_live else ""
    return f"Fills with the first profiled steps{when}: {fills}."


def depends(scene: Scene) -> Hashable:
    """Windows and how far they are read; before there is one also the steps that are left until the first."""
    run = scene.run
    if run is None:
        return ()
    read = sum(window.counts.read for window in run.windows)
    until = () if run.windows else (len(run.steps), scene.stance.is_live)
    return (run.path, len(run.windows), read, len(run.refused), scene.caveat != "", run.ended is not None, until)


def suits(scene: Scene) -> bool:
    """Recordings, which will have traces, and traces that hold what devices did, or may while they are read."""
    if scene.run is None:
        return not scene.is_read
    return scene.is_recorded or bool(scene.run.windows)
