"""How following a run ends: the report, what failed, and the exit code."""

from __future__ import annotations

import time
from pathlib import Path

import click

from meshscope.cli.headless import follow
from meshscope.recording.entries import Ended
from meshscope.reports.text import report
from meshscope.run import Gallery
from meshscope.units import printable


def followed(folder: Path, supervisor_pid: int | None, *, notes: list[str]) -> int:
    """Plain lines until the run has ended, then the report. The exit code."""
    click.echo(f"recording to {folder}")
    for note in notes:
        click.echo(f"note: {note}")
    runs = follow(folder, supervisor_pid)
    click.echo("")
    click.echo(report(runs))
    click.echo(f"\n{folder}   meshscope replay {folder}")
    return outcome(Gallery(folder))


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
    if not told:
        ends = [entry for entry in gallery.supervisor_at(time.time_ns()) if isinstance(entry, Ended)]
        told = [end.why for end in ends if end.outcome == "failed"]
    return tuple(told)
