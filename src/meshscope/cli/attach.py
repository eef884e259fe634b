"""``meshscope attach``: record jobs that are already running, and leave them as they were."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from meshscope.cli import options

if TYPE_CHECKING:
    from meshscope.capture.attach.candidates import Candidate
    from meshscope.experiment import Plan
    from meshscope.run import Gallery

_POLL_S = 0.25
_COMMAND_CELLS = 56


@click.command("attach")
@click.argument("targets", nargs=-1, metavar="[PID | HOST:PORT]...")
@click.option("--all", "is_all", is_flag=True, help="Every process here that can be attached to.")
@click.option(
    "--window", type=click.FloatRange(min=0.1, max=60), default=2.0, show_default=True, help="Seconds that are traced."
)
@click.option(
    "--every",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds from one window to the next; 0: only the first, and one for each press of p.",
)
@click.option(
    "--windows",
    type=click.IntRange(min=1),
    default=None,
    help="Detach after so many (default: one without a screen, no end on it).",
)
@click.option("--out", type=options.PATH, default=None, help="Folder for the recording.")
@options.screen
def command(*, targets: tuple[str, ...], is_all: bool, headless: bool, **given: Any) -> int:
    """Record running jobs: PID (a rank, or the torchrun above it) or HOST:PORT of a profiler or worker server.

    \b
    Without any: list the torch and JAX processes here, and how each can be attached to.
    PyTorch: start the job with KINETO_USE_DAEMON=1, or let it call
             torch.distributed.debug.start_debug_server().
    JAX:     call jax.profiler.start_server(9999) in it.

    Ctrl-C, or q on the screen, detaches: the job goes on as it was.
    """
    from meshscope.capture.attach.candidates import candidates

    if not targets and not is_all:
        return _listed(candidates())
    return _attached(targets, is_all=is_all, headless=headless, given=given)


def _listed(found: Sequence[Candidate]) -> int:
    from meshscope.errors import InputError
    from meshscope.units import printable

    if not found:
        raise InputError(
            "No process here has loaded torch or JAX, or none that this user may look into.",
            hint="Start a job with KINETO_USE_DAEMON=1 (torch) or jax.profiler.start_server(9999) (JAX).",
        )
    for line in lines(found):
        click.echo(printable(line))
    return 0


def lines(found: Sequence[Candidate]) -> list[str]:
    """A row per process, and below, for those that cannot be attached to, why and what to do."""
    from meshscope.reports.columns import wrapped
    from meshscope.units import ranges

    rows = [("pid", "kind", "rank", "listens on", "attach by", "command"), *map(_row, found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    listed = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    refusals: dict[tuple[str, str], list[int]] = {}
    for one in found:
        if not one.door:
            refusals.setdefault(one.refusal, []).append(one.pid)
    for (why, hint), pids in refusals.items():
        listed += ["", *wrapped(f"{ranges(pids)}: {why}.", indent=""), *wrapped(hint)]
    if any(one.door for one in found):
        listed += ["", "Record them: meshscope attach PID…, or meshscope attach --all"]
    return listed


def _row(one: Candidate) -> tuple[str, ...]:
    rank = f"{one.rank} of {one.world}" if one.rank >= 0 and one.world else "–"
    ports = ", ".join(map(str, one.ports)) or "–"
    command = one.command if len(one.command) <= _COMMAND_CELLS else f"{one.command[: _COMMAND_CELLS - 1]}…"
    return str(one.pid), "+".join(one.frameworks), rank, ports, one.door or "–", command


def _attached(words: tuple[str, ...], *, is_all: bool, headless: bool, given: dict[str, Any]) -> int:
    """Plan, start what attends to the processes, and follow it on the screen or in plain lines."""
    from meshscope.capture import launch
    from meshscope.capture.attach import kineto_socket, planning
    from meshscope.capture.attach.candidates import candidates
    from meshscope.capture.attach.targets import targets

    look = {name: given.pop(name) for name in options.LOOK}
    draws = options.draws(headless=headless)
    chosen, notes = targets(words, candidates(), is_all=is_all)
    for place in {target.socket_dir for target in chosen if target.door == "kineto"}:
        kineto_socket.check(place)
    most = given["windows"] or (0 if draws else 1)
    asked = planning.Attach(
        targets=chosen,
        out=str(given["out"] or ""),
        window_s=given["window"],
        every_s=given["every"],
        most=most,
    )
    plan = planning.plan(asked, notes)
    folder = Path(plan.request["out"])
    pid = launch.start(folder, plan, module="meshscope.capture.attach.daemon")
    if draws:
        from meshscope.cli import ending, screen

        return ending.outcome(screen.show(folder, **look))
    return _followed(folder, pid, plan)


def _followed(folder: Path, pid: int, plan: Plan) -> int:
    """Plain lines until it is over or Ctrl-C detaches, then the report. The exit code."""
    from meshscope.cli import ending
    from meshscope.cli.headless import quoted
    from meshscope.reports.text import report
    from meshscope.run import Gallery
    from meshscope.units import printable

    click.echo(f"recording in {printable(str(folder))}")
    for note in plan.notes:
        click.echo(f"note: {printable(note)}")
    gallery = Gallery(folder)
    _until_over(folder, pid, gallery)
    _, runs = gallery.at(time.time_ns())
    if runs:
        click.echo(f"\n{report(runs, answer_last=True)}")
    click.echo(f"\nmeshscope replay {quoted(folder)}")
    return ending.outcome(gallery)


def _until_over(folder: Path, pid: int, gallery: Gallery) -> None:
    """The log as it grows. Ctrl-C and SIGTERM ask for the end, and do no more: the jobs are somebody else's."""
    from meshscope.capture import launch
    from meshscope.cli.attach_following import Told
    from meshscope.cli.stopping import Stopping
    from meshscope.errors import LaunchError

    told = Told(gallery)
    with Stopping(folder, "Detaching; the job goes on."):
        while gallery.end_unix_ns is None:
            told.look(time.time_ns())
            if not launch.is_running(pid) and gallery.end_unix_ns is None:
                raise LaunchError("What attended to the jobs is gone; the jobs are not its children and go on.")
            time.sleep(_POLL_S)
    told.look(time.time_ns())
