"""``meshscope compare``: what changed from A to B, how sure it is, and whether a build is to fail on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from meshscope.cli import options

if TYPE_CHECKING:
    from meshscope.analysis.conditions import Condition, Judged
    from meshscope.analysis.figures import Figures
    from meshscope.analysis.pairing import Changes

FAILED, UNTOLD = 3, 4
_PATH = options.SOURCE
_HEAD_BYTES = 256

Refusals = list[tuple[str, str, str]]


@click.command("compare")
@click.argument("a", type=_PATH)
@click.argument("b", type=_PATH, required=False)
@click.option("--json", "is_json", is_flag=True, help="One JSON object on stdout, and nothing else.")
@click.option("--screen", "on_screen", is_flag=True, help="On the screen, side by side (where there is a terminal).")
@click.option("--fail-on", multiple=True, metavar="CONDITION", help='Such as "step_time>5%"; may be given again.')
@click.option("--also-a", multiple=True, type=_PATH, metavar="PATH", help="A repeat of A; may be given again.")
@click.option("--also-b", multiple=True, type=_PATH, metavar="PATH", help="A repeat of B; may be given again.")
@click.option("--save-baseline", type=_PATH, metavar="FILE", help="Keep what compare needs of A, to give as A later.")
def command(
    *,
    a: Path,
    b: Path | None,
    is_json: bool,
    on_screen: bool,
    fail_on: tuple[str, ...],
    also_a: tuple[Path, ...],
    also_b: tuple[Path, ...],
    save_baseline: Path | None,
) -> int:
    """Say what changed from A to B: recordings, folders of several strategies, native traces, or a saved baseline.

    The verdict is faster, slower, no difference or cannot say, on the time of unprofiled steps past warm-up. Repeats
    of the same thing (--also-a, --also-b) narrow its interval. A recording and its copy are no difference.

    \b
    CONDITION is METRIC OP NUMBER with % (the change from A to B, in percent
    of A) or a unit (the value of B); several with commas between:
      step_time>5%   throughput<-5%   exposed>20ms   memory>30GB
    METRIC: step_time, throughput, compute, collective, exposed, idle, memory.
    It holds when the whole 99 % interval lies beyond NUMBER.

    \b
    Exit codes with --fail-on:
      0  no condition holds
      3  a condition holds
      4  none holds, but of one nobody can say (too noisy, not recorded, …)
    1 (it could not be done) and 2 (usage) as everywhere; 0 without --fail-on.
    """
    if b is None and (save_baseline is None or fail_on or also_b):
        raise click.UsageError("Give A and B, or A and --save-baseline FILE.")
    from meshscope.units import printable

    asked = _conditions(fail_on)
    refused: Refusals = []
    before = _opened((a, *also_a), refused)
    if save_baseline is not None:
        _save(before, save_baseline)
    if b is None:
        return 0
    if not (also_a or also_b) and os.path.realpath(a) == os.path.realpath(b):
        click.echo(f"note: A and B are one path: {printable(str(a))}", err=True)
    shown = "json" if is_json else "screen" if on_screen and options.draws(headless=False) else "text"
    return _compared(before, _opened((b, *also_b), refused), asked, refused, shown=shown)


def _conditions(texts: tuple[str, ...]) -> tuple[Condition, ...]:
    from meshscope.analysis.conditions import conditions
    from meshscope.errors import InputError

    try:
        return tuple(found for text in texts for found in conditions(text))
    except InputError as error:
        raise click.BadParameter(f"{error.message} {error.hint}", param_hint="--fail-on") from error


def _opened(paths: tuple[Path, ...], refused: Refusals) -> list[Figures]:
    """The figures of every run at the paths. Raises InputError where a path holds none."""
    from meshscope.analysis.figures import figures
    from meshscope.cli.opening import open_paths
    from meshscope.errors import InputError
    from meshscope.reports.baseline import decoded

    found: list[Figures] = []
    for path in paths:
        content = _baseline(path)
        if content is not None:
            found += decoded(content, str(path))
            continue
        opened = open_paths((path,))
        refused += opened.refused
        if not opened.runs:
            name, why, hint = opened.refused[0]
            raise InputError(why if name in why else f"{name}: {why}", hint=hint)
        found += (figures(run) for run in opened.runs)
    return found


def _baseline(path: Path) -> bytes | None:
    """What stands in a file that says it is a baseline; None for anything else."""
    from meshscope.errors import InputError
    from meshscope.reports.baseline import is_baseline

    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return path.read_bytes() if is_baseline(file.read(_HEAD_BYTES)) else None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint="Check its permissions.") from error


def _save(runs: list[Figures], path: Path) -> None:
    from meshscope.errors import InputError
    from meshscope.recording.layout import write_whole
    from meshscope.reports.baseline import encoded

    # A rename over a link, a pipe or a device would put a file in its place.
    target = Path(os.path.realpath(path))
    if path.exists() and (not path.is_file() or _baseline(path) is None):
        what = "holds something else than a baseline" if path.is_file() else "is no regular file"
        raise InputError(f"{path} {what}; it is left as it is.", hint="Name another file.")
    try:
        write_whole(target, encoded(runs))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.", hint="Name another file.") from error


def _compared(
    a: list[Figures], b: list[Figures], asked: tuple[Condition, ...], refused: Refusals, *, shown: str
) -> int:
    from meshscope.analysis.conditions import judged
    from meshscope.analysis.pairing import changes
    from meshscope.units import printable

    found = changes(a, b)
    verdicts = tuple(one for pair in found.changes for one in judged(asked, pair))
    if shown == "json":
        from meshscope.reports.change_json import change_json

        click.echo(change_json(found, verdicts, refused))
    elif shown == "screen":
        from meshscope.cli import screen

        screen.compare(found)
        for pair in found.changes:
            click.echo(printable(pair.sentence))
    else:
        from meshscope.reports.change_text import change_report

        click.echo(change_report(found, verdicts))
    for path, why, hint in refused:
        click.echo(f"meshscope: {printable(why if path in why else f'{path}: {why}')}", err=True)
        if hint:
            click.echo(f"  {printable(hint)}", err=True)
    return _exit_code(found, verdicts, asked)


def _exit_code(found: Changes, verdicts: tuple[Judged, ...], asked: tuple[Condition, ...]) -> int:
    from meshscope.analysis.change import UNSURE
    from meshscope.analysis.conditions import HOLDS

    if any(one.state == HOLDS for one in verdicts):
        return FAILED
    is_untold = any(one.state == UNSURE for one in verdicts) or bool(asked and found.alone)
    return UNTOLD if is_untold else 0
