"""``meshscope open``: native traces on the screen, while they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from meshscope.cli import options


@click.command("open")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=options.SOURCE)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=None, help="Files read at once (default: as many as cores)."
)
@options.screen
@click.pass_context
def command(ctx: click.Context, /, *, paths: tuple[Path, ...], jobs: int | None, headless: bool, **look: Any) -> int:
    """Look at native traces (Kineto JSON, xplane.pb) or folders of them; what is known so far is shown while they are
    read. A recording is replayed, those of a run's nodes as one.

    Without a terminal: what meshscope analyze prints.
    """
    if not options.draws(headless=headless):
        from meshscope.cli import analyze

        code: int = ctx.invoke(analyze.command, paths=paths, jobs=jobs)
        return code
    from meshscope.cli.opening import is_recorded, nodes_in

    if len(paths) == 1 and is_recorded(paths[0]):
        from meshscope.cli import screen

        screen.show(paths[0], **look)
        return 0
    if all(is_recorded(inside) for path in paths for inside in nodes_in(path)):
        from meshscope.cli import screen

        screen.show_nodes(paths, **look)
        return 0
    return _traces(paths, jobs, look)


def _traces(paths: tuple[Path, ...], jobs: int | None, look: dict[str, Any]) -> int:
    from meshscope.cli import screen
    from meshscope.cli.opening import is_recorded
    from meshscope.errors import InputError

    for path in paths:
        if is_recorded(path):
            raise InputError(f"{path} is a recording, not a trace.", hint=f"Watch it: meshscope replay {path}")
    opening = screen.opening(paths, jobs=jobs)
    screen.show_traces(opening, **look)
    return 0 if opening.seen().runs or not opening.seen().so_far.is_done else 1
