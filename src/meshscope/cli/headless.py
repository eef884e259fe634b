"""Following a run without a screen: a line whenever something changes, and the report at the end."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import click

from meshscope.analysis.progress import Progress, progress
from meshscope.cli.stopping import Stopping
from meshscope.errors import LaunchError
from meshscope.run import Gallery, Run
from meshscope.units import printable

_POLL_S = 0.25
# Steps that change nothing else are told this often at most.
_STEP_LINE_S = 5.0


class Follower:
    """Prints what changed in a comparison folder since the last look."""

    def __init__(self, gallery: Gallery, say: Callable[[str], None] = click.echo) -> None:
        self._gallery = gallery
        self._say = say
        self._told: dict[str, str] = {}
        self._step_told_s: dict[str, float] = {}

    def look(self, now_unix_ns: int) -> tuple[Run, ...]:
        _, runs = self._gallery.at(now_unix_ns)
        for run in runs:
            self._tell(run, progress(run))
        return runs

    def _tell(self, run: Run, state: Progress) -> None:
        name = run.experiment.strategy
        key = f"{state.state} {state.detail}"
        now_s = time.monotonic()
        is_new = self._told.get(name) != key
        is_due = run.ended is None and not run.is_lost and now_s - self._step_told_s.get(name, now_s) >= _STEP_LINE_S
        if not is_new and not is_due:
            return
        self._told[name], self._step_told_s[name] = key, now_s
        self._say(line(run, state))


def line(run: Run, state: Progress) -> str:
    """``ddp     training         step 12 of 60``"""
    where = f"step {state.step} of {state.planned}" if state.step >= 0 and state.planned else ""
    text = f"{run.experiment.strategy:<14} {state.state:<19}{where}"
    if state.why:
        text = f"{text}  {state.why}"
    elif state.detail:
        text = f"{text}  {state.detail}"
    return printable(text.rstrip())


class Interrupted(Exception):  # noqa: N818  # a person's wish, not an error
    """The run was stopped because this command was interrupted; everything has ended."""


def follow(
    folder: Path, gallery: Gallery, supervisor_pid: int | None, *, say: Callable[[str], None] = click.echo
) -> tuple[Run, ...]:
    """Follow until the run has ended; ``say`` is given each line.

    With ``supervisor_pid`` the run is this command's own: Ctrl-C and SIGTERM ask the supervisor to stop and wait for
    it, and Interrupted is raised once it has. Without, the run is somebody else's, and an interrupt only leaves it.
    Raises LaunchError when the supervisor is gone before its end.
    """
    if supervisor_pid is None:
        return _watched(gallery, Follower(gallery, say))
    follower = Follower(gallery, say)
    with Stopping(folder, "Stopping the run (once more to leave without waiting).") as stopping:
        while gallery.end_unix_ns is None:
            follower.look(time.time_ns())
            if not _is_alive(supervisor_pid) and gallery.end_unix_ns is None:
                gallery.at(time.time_ns())
                if gallery.end_unix_ns is None:
                    raise LaunchError(
                        "The supervisor of this run is gone.",
                        hint=f"What was recorded opens: meshscope replay {quoted(folder)}",
                    )
            time.sleep(_POLL_S)
        runs = follower.look(time.time_ns())
    if stopping.was_asked:
        raise Interrupted
    return runs


def _watched(gallery: Gallery, follower: Follower) -> tuple[Run, ...]:
    while gallery.end_unix_ns is None:
        follower.look(time.time_ns())
        time.sleep(_POLL_S)
    return follower.look(time.time_ns())


def quoted(folder: Path) -> str:
    """A path as it can be pasted into a shell."""
    return printable(shlex.quote(str(folder)))


def _is_alive(pid: int) -> bool:
    """Whether our child (or any process) still runs; a child that has ended is reaped here."""
    try:
        ended, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return _exists(pid)
    return ended == 0


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
