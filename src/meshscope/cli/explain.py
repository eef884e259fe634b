"""``meshscope explain``: what a number is made of, down to spans, rules and dropped events."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from meshscope.cli import options

if TYPE_CHECKING:
    from meshscope.run import Opened


@click.command("explain")
@click.argument("words", nargs=-1, required=True, metavar="PATH... [NUMBER]")
@click.option("--strategy", "--run", "of", metavar="NAME", help="Of this strategy or run alone.")
@click.option("--rank", type=click.IntRange(min=0), help="Of this rank alone.")
@click.option("--step", type=click.IntRange(min=0), help="Of this step alone, where the number can be told of one.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object on stdout, and nothing else.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Files read at once (as many as cores).")
@click.option("--config", type=options.PATH, metavar="FILE", help="Your rules for kernels (TOML).")
def command(
    *,
    words: tuple[str, ...],
    of: str | None,
    rank: int | None,
    step: int | None,
    is_json: bool,
    jobs: int | None,
    config: Path | None,
) -> int:
    """Say what a number is made of: its formula with figures, the windows, spans and rules behind it, what was dropped.

    \b
    NUMBER is a name from analyze --json or from a table: exposed, overlap,
    step_time, throughput, memory.peak, collectives.all_reduce.busbw,
    operations.NAME, phases.backward, scopes.module.NAME, launches.latency,
    idle.data, ddp.tail, fsdp.exposed, critical_path.compute, what_if.NAME,
    findings.CODE.cost, …
    Without it: which numbers there are.

    The parts add up to what analyze --json shows. A word that is a file is taken for one: write ./idle for a file that
    is called like a number.
    """
    from meshscope.cli.opening import open_paths
    from meshscope.config import settings, use
    from meshscope.errors import InputError

    paths, number = _told_apart(words)
    if number is None and (rank, step) != (None, None):
        raise click.UsageError("Missing argument 'NUMBER': --rank and --step narrow one down.")
    if config is not None:
        use(settings(config))
    opened = open_paths(paths, jobs=jobs)
    if not opened.runs:
        path, why, hint = opened.refused[0]
        raise InputError(why if path in why else f"{path}: {why}", hint=hint)
    click.echo(
        _listed(opened, of=of, is_json=is_json)
        if number is None
        else _explained(opened, number, of=of, rank=rank, step=step, is_json=is_json)
    )
    _tell_refused(opened)
    return 0


def _told_apart(words: Sequence[str]) -> tuple[list[Path], str | None]:
    """The paths, and the number where the last word is one."""
    *before, last = words
    if not before or os.path.exists(last):
        return [options.SOURCE.convert(word, None, None) for word in words], None
    return [options.SOURCE.convert(word, None, None) for word in before], last


def _listed(opened: Opened, *, of: str | None, is_json: bool) -> str:
    from meshscope.analysis.explaining import chosen, explainable

    runs = chosen(opened.runs, of)
    found = explainable(runs)
    if is_json:
        from meshscope.reports.explain_json import numbers_json

        return numbers_json(found, opened.refused)
    from meshscope.reports.explain_text import numbers_report

    return numbers_report(found, list(dict.fromkeys(run.name for run in runs)))


def _explained(
    opened: Opened, number: str, *, of: str | None, rank: int | None, step: int | None, is_json: bool
) -> str:
    from meshscope.analysis.explaining import explanations

    found = explanations(opened.runs, number, of=of, rank=rank, step=step)
    if is_json:
        from meshscope.reports.explain_json import explain_json

        return explain_json(found, opened.refused)
    from meshscope.reports.explain_text import explain_report

    return explain_report(found)


def _tell_refused(opened: Opened) -> None:
    from meshscope.units import printable

    for note in opened.notes:
        click.echo(f"note: {printable(note)}", err=True)
    for path, why, hint in opened.refused:
        click.echo(f"meshscope: {printable(why if path in why else f'{path}: {why}')}", err=True)
        if hint:
            click.echo(f"  {printable(hint)}", err=True)
