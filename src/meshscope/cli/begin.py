"""``meshscope`` without a command: the start screen."""

from __future__ import annotations

from pathlib import Path

import click

from meshscope.cli import options


def begin() -> None:
    """Pick strategies and a model, or a recording, on the screen; without a terminal, say what there is."""
    if not options.draws(headless=False):
        click.echo(click.get_current_context().get_help())
        return
    from meshscope.cli import screen

    screen.begin((options.RUNS, Path()))
