"""How following a run ends: the report, what failed, and the exit code."""

from __future__ import annotations

import time
from pathlib import Path

import click

from meshscope.cli.headless import Interrupted, follow, quoted
from meshscope.recording.entries import Ended
from meshscope.reports.text import report
from meshscope.run import Gallery
from meshscope.units import printable

INTERRUPTED = 130


def followed(folder: Path, supervisor_pid: int | None, *, notes: list[str]) -> int:
    """Plain lines until the run has ended, then the report. The exit code."""
    gallery = Gallery(folder)
    try:
        return _followed(folder, gallery, supervisor_pid, notes)
    except Interrupted:
        click.echo(f"Stopped as asked; every rank has ended. meshscope replay {quoted(folder)}", err=True)
        return INTERRUPTED
    except KeyboardInterrupt:
        _say_it_goes_on(folder, gallery)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our lines has left; like a closed terminal, that stops nothing.
        _say_it_goes_on(folder, gallery)
        raise


def _followed(folder: Path, gallery: Gallery, supervisor_pid: int | None, notes: list[str]) -> int:
    click.echo(f"recording in {printable(str(folder))}")
    for note in notes:
        click.echo(f"note: {printable(note)}")
    runs = follow(folder, gallery, supervisor_pid)
    if runs:
        click.echo(f"\n{report(runs, answer_last=True)}")
    for strategy, why in (gallery.plan.left_out if gallery.plan else {}).items():
        click.echo(f"not run here: {printable(strategy)}: {printable(why)}")
    click.echo(f"\nmeshscope replay {quoted(folder)}")
    return outcome(gallery)


def _say_it_goes_on(folder: Path, gallery: Gallery) -> None:
    if gallery.end_unix_ns is None:
        click.echo(f"The run goes on: meshscope watch {quoted(folder)}", err=True)


def outcome(gallery: Gallery) -> int:
    """0 when every planned strategy ended well or was stopped; 1 with the reasons of those that did not, on stderr."""
    reasons = failures(gallery)
    for reason in reasons:
        click.echo(f"meshscope: {printable(reason)}", err=True)
    return 1 if reasons else 0


def failures(gallery: Gallery) -> tuple[str, ...]:
    """Which strategies failed, and why."""
    _, runs = gallery.at(time.time_ns())
    told = [f"{r.experiment.strategy} failed: {r.ended.why}" for r in runs if r.ended and r.ended.outcome == "failed"]
    told += [f"{r.experiment.strategy} is lost: its supervisor is gone without an end" for r in runs if r.is_lost]
    if not told:
        ends = [entry for entry in gallery.supervisor_at(time.time_ns()) if isinstance(entry, Ended)]
        told = [end.why for end in ends if end.outcome == "failed"]
    return tuple(told)
