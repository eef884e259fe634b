"""The command line. Nothing but click is imported before the command is known, so ``--help`` answers at once.

One file per command. This is one of the two doors where meshscope's own errors become two lines for a person;
anything else that is raised is a bug and shows as one.
"""

from __future__ import annotations

import errno
import importlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import click

from meshscope import __version__
from meshscope.errors import MeshscopeError
from meshscope.reports.columns import narrowed

# name → (module, what --help says before the module is imported)
_COMMANDS = {
    "demo": ("demo", "Run four strategies with defaults that suit this machine, and watch them."),
    "run": ("run", "Run and record strategies: meshscope run ddp fsdp --ranks 4"),
    "attach": ("attach", "Record jobs that are already running; without a target, list those that there are."),
    "watch": ("watch", "Rejoin a run that is still being recorded."),
    "replay": ("replay", "Watch a recording again, at any speed."),
    "open": ("open", "Look at native traces, or folders of them, on the screen."),
    "analyze": ("analyze", "Print what a recording or a native trace says, as text or JSON."),
    "explain": ("explain", "Say what a number is made of: its formula, spans, rules and dropped events."),
    "advise": ("advise", "Predict which strategy trains a model fastest on given devices, and say why."),
    "compare": ("compare", "Say what changed from one run to another, and fail a build on it."),
    "calibrate": ("calibrate", "Measure what this machine reaches, for advise to predict it."),
    "cache": ("cache", "Say where read traces are kept and how much they take, or clear them."),
    "doctor": ("doctor", "Say what works on this machine, and how to mend what does not."),
}


# What the objects of commands with --json list.
_LISTED = {"analyze": "recordings", "compare": "comparisons", "explain": "explanations", "advise": "candidates"}

_LEFT_ALONE = 128 + 13  # what shells say of a program that SIGPIPE has ended


class _UnreadError(Exception):
    """Who read stdout has left. No OSError: click would end the process with 1, as if something had failed."""


@contextmanager
def _past_click() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _UnreadError from error


class _Lazy(click.Group):
    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _past_click():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _past_click():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"meshscope.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.command(cls=_Lazy, invoke_without_command=True)
@click.version_option(__version__, prog_name="meshscope")
@click.option("--config", metavar="FILE", help="Your configuration file (TOML).")
@click.pass_context
def group(ctx: click.Context, config: str | None) -> None:
    """A terminal profiler for distributed training: strategies side by side, measured on this machine.

    Without a command: the start screen, to pick strategies and a model, or a recording.
    """
    from pathlib import Path

    from meshscope.config import settings, use

    use(settings(Path(config) if config else None))
    if ctx.invoked_subcommand is None:
        from meshscope.cli.begin import begin

        begin()


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """The ``meshscope`` command. Exit codes: 0 done, 1 it could not be done, 2 usage, 130 interrupted.

    141: who read the output left before its end, as shells say it. ``compare --fail-on`` has two more, 3 and 4.
    """
    if argv is not None:
        sys.exit(_answer(list(argv)))
    try:
        code = _answer(sys.argv[1:])
    except SystemExit as leaving:
        if not isinstance(leaving.code, int):
            raise
        code = leaving.code
    _end(code)


def _end(code: int) -> NoReturn:
    """End the process. Questions of a screen go on in threads that cannot be stopped; one that is torn out of compiled
    code while the interpreter is taken apart aborts it (134, "terminate called"), so then it is not taken apart.
    """
    if "textual" in sys.modules:
        import atexit
        import threading

        others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
        if any(thread.daemon for thread in others):
            for thread in others:
                if not thread.daemon:
                    thread.join()  # as the interpreter would
            atexit._run_exitfuncs()  # processes that read are ended here
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError, AttributeError):
                    stream.flush()
            os._exit(code)
    sys.exit(code)


def _answer(argv: list[str]) -> int:
    try:
        # Not standalone: click would turn our errors into its own and swallow exit codes.
        with narrowed(_columns()):
            result = group.main(argv, prog_name="meshscope", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except MeshscopeError as error:
        _tell_programs(error, argv)
        return _told(error)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (OSError, _UnreadError) as error:
        return _unwritten(error)
    return result if isinstance(result, int) else 0


def _columns() -> int | None:
    """How wide the terminal is that reports are written to; None where they go to a file or another program."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def _unwritten(error: OSError | _UnreadError) -> int:
    """The reader of stdout (head, less) has left, or the disk is full; any other OSError is a bug and is raised."""
    if isinstance(error, _UnreadError | BrokenPipeError):
        _drop_stdout()
        # Neither done nor failed: a build that gates on the code must not pass, and nobody is left to be told.
        return _LEFT_ALONE
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        raise error
    _drop_stdout()
    return _told(MeshscopeError(f"{os.strerror(error.errno)}.", hint="Make room, or write elsewhere."))


def _drop_stdout() -> None:
    """What is left to write goes nowhere: Python would complain again when it flushes at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell_programs(error: MeshscopeError, argv: Sequence[str]) -> None:
    """With ``--json`` there is one object on stdout also where nothing could be done."""
    listed = next((_LISTED[word] for word in argv if word in _LISTED), None)
    if "advise" in argv and any(word.startswith("--runs") for word in argv):
        listed = "rows"
    if listed is not None and "--json" in argv:
        import json

        refused = [{"path": None, "why": error.message, "hint": error.hint}]
        click.echo(json.dumps({"format": 1, listed: [], "refused": refused}, indent=1))


def _told(error: MeshscopeError) -> int:
    from meshscope.units import printable

    click.echo(f"meshscope: {printable(error.message)}", err=True)
    if error.hint:
        click.echo(f"  {printable(error.hint)}", err=True)
    return 1
