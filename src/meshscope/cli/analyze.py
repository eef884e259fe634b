"""``meshscope analyze``: what recordings and native traces say, as text or as JSON for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from meshscope.cli import options


@click.command("analyze")
@click.argument("paths", nargs=-1, metavar="PATH...", type=options.SOURCE)
@click.option("--json", "is_json", is_flag=True, help="One JSON object on stdout, and nothing else.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Files read at once (as many as cores).")
@click.option("--kernels", "with_kernels", is_flag=True, help="Also which rule took which names for what.")
@click.option("--claim", help='Is a published step time possible? "1.3b 8xA100 256x512 180ms"')
@click.option("--config", type=options.PATH, metavar="FILE", help="Your rules for kernels (TOML).")
def command(
    *,
    paths: tuple[Path, ...],
    is_json: bool,
    with_kernels: bool,
    claim: str | None,
    config: Path | None,
    jobs: int | None,
) -> int:
    """Analyze recordings, native traces (Kineto JSON, xplane.pb) or folders of them.

    --claim takes MODEL N×DEVICE BATCH×SEQ TIME in any order, needs no PATH, and prints the arithmetic.

    Files and folders of one run, given together, are one recording. Exit code 0 also when some of several inputs were
    refused (each is listed on stderr); 1 when all were.
    """
    if claim is not None:
        from meshscope.cli.claiming import claimed

        return claimed(claim, paths, is_json=is_json)
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'.")
    from meshscope.cli.opening import open_paths
    from meshscope.config import settings, use
    from meshscope.units import printable

    if config is not None:
        use(settings(config))
    opened = open_paths(paths, jobs=jobs)
    if is_json:
        from meshscope.reports.analysis_json import analysis_json

        click.echo(analysis_json(opened.runs, opened.refused, with_kernels=with_kernels))
    else:
        from meshscope.reports.text import report

        if opened.runs:
            click.echo(report(opened.runs, with_kernels=with_kernels))
    for note in opened.notes:
        click.echo(f"note: {printable(note)}", err=True)
    for path, why, hint in opened.refused:
        click.echo(f"meshscope: {printable(why if path in why else f'{path}: {why}')}", err=True)
        if hint:
            click.echo(f"  {printable(hint)}", err=True)
    return 0 if opened.runs else 1
