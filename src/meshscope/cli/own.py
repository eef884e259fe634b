"""``meshscope run -- COMMAND``: a user's own command, unmodified, under the profiler.

Without a screen the command has the terminal to itself: its output, input, exit code and signals are its own, and
meshscope speaks on stderr alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from meshscope.cli import options

if TYPE_CHECKING:
    from meshscope.recording.entries import Entry
    from meshscope.run import Gallery

_COMMAND = "meshscope.command"
_MEANT = frozenset({"out", "window", "every", "budget", "headless", *options.LOOK})


class OrCommand(click.Command):
    """A command whose line may end in ``-- COMMAND…``, which is nobody's to parse but COMMAND's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


def given() -> tuple[str, ...] | None:
    """What stood behind ``--``; None where there was no ``--``. Usage errors for what cannot go together."""
    ctx = click.get_current_context()
    command: tuple[str, ...] | None = ctx.meta.get(_COMMAND)
    if command is None:
        return None
    if not command:
        raise click.UsageError("There is no command after --: meshscope run -- torchrun train.py")
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in _MEANT or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if name == "strategies":
            raise click.UsageError("Strategies and a command of your own are separate runs: leave one of them out.")
        raise click.UsageError(f"{parameter.opts[0]} is for the bundled workloads: your own command takes its options.")
    return command


def launch(command: Sequence[str], out: Path | None, *, headless: bool, given: dict[str, Any]) -> int:
    """Run the command and record it. The exit code is the command's, 128 + n where signal n ended it."""
    from meshscope.capture import launch as capture
    from meshscope.capture.own import planning

    look = {name: given.pop(name) for name in options.LOOK}
    plan = planning.plan(_request(command, out, given))
    folder = Path(plan.request["out"])
    if not options.draws(headless=headless):
        return _in_front(folder, plan)
    from meshscope.cli import ending, screen

    capture.start(folder, plan)
    gallery = screen.show(folder, **look)
    code = _code(gallery)
    return ending.outcome(gallery) if code is None else code


def _request(command: Sequence[str], out: Path | None, given: dict[str, Any]) -> Any:
    from meshscope.capture.request import Request
    from meshscope.cli.run import windows

    return Request(strategies=(), out=str(out or ""), windows=windows(given), command=tuple(command))


def _in_front(folder: Path, plan: Any) -> int:
    from meshscope.capture import places, supervisor
    from meshscope.capture.own.passing import Passing
    from meshscope.cli.headless import quoted
    from meshscope.errors import MeshscopeError
    from meshscope.run import Gallery

    places.made(folder, plan).close()
    _tell(f"recording in {folder}")
    passing = Passing(folder)
    try:
        supervisor.supervise(folder, passing, _heard)
        _report(Gallery(folder))
        _tell(f"meshscope replay {quoted(folder)}")
    except (OSError, MeshscopeError) as error:
        # The command has run: whatever became of its recording, its exit code is what was asked for.
        if passing.exit_code is None:
            raise
        _tell(f"There is no whole recording: {error}")
    return 1 if passing.exit_code is None else _as_shells_do(passing.exit_code)


def _report(gallery: Gallery) -> None:
    import time

    from meshscope.reports.text import report

    _, runs = gallery.at(time.time_ns())
    if any(len(run.steps) for run in runs):
        click.echo(f"\n{report(runs, answer_last=True)}\n", err=True)
    for run in runs:
        if run.ended is not None and run.ended.why:
            _tell(f"{run.name}: {run.ended.outcome}: {run.ended.why}")


def _heard(entry: Entry) -> None:
    """A line for what a person wants to know at once; the rest is in the report."""
    from meshscope.recording.entries import Log, Recognized, TraceWritten

    if isinstance(entry, Recognized) and entry.rank == 0:
        from meshscope.units import counted

        _tell(f"{entry.title}, {counted(entry.ranks, 'rank')} on {entry.device_kind.upper()}")
    elif isinstance(entry, TraceWritten) and entry.rank == 0:
        first, last = entry.first_step, entry.end_step - 1
        _tell(f"profiled step {first}" if first == last else f"profiled steps {first}–{last}")
    elif isinstance(entry, Log) and entry.level != "info":
        _tell(entry.text)


def _tell(text: str) -> None:
    from meshscope.units import printable

    click.echo(f"meshscope: {printable(text)}", err=True)


def _code(gallery: Gallery) -> int | None:
    """The command's exit code as a shell would say it; None while it runs, and where nobody saw it end."""
    import time

    _, runs = gallery.at(time.time_ns())
    codes = [run.ended.exit_code for run in runs if run.ended is not None and run.ended.exit_code is not None]
    return _as_shells_do(codes[0]) if codes else None


def _as_shells_do(code: int) -> int:
    return code if code >= 0 else 128 - code
