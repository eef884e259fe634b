"""``meshscope replay``: a recording again, from its start, at any speed."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any

import click

from meshscope.cli import options


@click.command("replay")
@click.argument("recordings", nargs=-1, metavar="[RECORDING]...", type=options.SOURCE)
@click.option(
    "--speed",
    type=click.FloatRange(min=0.01),
    default=None,
    help="Times real time (screen: as last chosen there, else 1; plain: all at once).",
)
@options.screen
def command(*, recordings: tuple[Path, ...], speed: float | None, headless: bool, **look: Any) -> int:
    """Watch RECORDING again; without one, the recordings that come with meshscope. Those of a run's nodes are one.

    Without a terminal it prints the progress lines of the run and its report.
    """
    if speed is not None and not math.isfinite(speed):
        raise click.BadParameter("it must be a finite number.", param_hint="--speed")
    folders = recordings or (_bundled(),)
    if options.draws(headless=headless):
        from meshscope.cli import screen

        screen.replay(folders, speed=speed, **look)
        return 0
    from meshscope.cli.nodes import reel

    _in_plain_lines(reel(folders), speed)
    return 0


def _bundled() -> Path:
    """The recording that comes with meshscope: the one of what ran, where there are also simulated ones."""
    from meshscope.discovery import bundled
    from meshscope.errors import InputError
    from meshscope.recording.layout import PLAN, read_plan

    for plan in sorted(bundled("recordings").glob(f"*/{PLAN}")):
        found = read_plan(plan.parent)
        if found is not None and not found.is_simulated:
            return plan.parent
    raise InputError("This installation carries no recording.", hint="Make one: meshscope demo")


def _in_plain_lines(gallery: Any, speed: float | None) -> None:
    from meshscope.cli.headless import Follower
    from meshscope.reports.text import report

    start_ns, end_ns = gallery.start_unix_ns, gallery.end_unix_ns or time.time_ns()
    follower = Follower(gallery)
    tick_ns = 250_000_000
    for now_ns in range(start_ns, end_ns, tick_ns):
        follower.look(now_ns)
        if speed is not None:
            sys.stdout.flush()
            time.sleep(tick_ns / 1e9 / speed)
    runs = follower.look(end_ns)
    click.echo("")
    click.echo(report(runs, answer_last=True))
