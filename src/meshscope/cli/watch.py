"""``meshscope watch``: rejoin a run that is still being recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from meshscope.cli import options


@click.command("watch")
@click.argument("recording", type=options.PATH)
@options.screen
def command(*, recording: Path, headless: bool, **look: Any) -> int:
    """Rejoin the run that is being recorded in RECORDING; one that has ended opens at its end.

    Leaving does not stop the run unless you say so.
    """
    if options.draws(headless=headless):
        from meshscope.cli import screen

        screen.show(recording, **look)
        return 0
    from meshscope.cli.ending import followed

    return followed(recording, None, notes=[])
