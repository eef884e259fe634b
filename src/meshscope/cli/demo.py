"""``meshscope demo``: the main job with defaults that suit this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from meshscope.cli import options


@click.command("demo")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder for the recordings.")
@click.option("--ranks", type=click.IntRange(min=1), default=None, help="Ranks (default: all GPUs, else CPU ranks).")
@click.option("--steps", type=click.IntRange(min=1), default=None, help="Training steps of each strategy.")
@options.screen
def command(*, out: Path | None, headless: bool, **given: Any) -> int:
    """Record DDP, FSDP, pmap and pjit of a tiny transformer, and their single-device baselines, on this machine.

    On GPUs where there are some, else on CPU ranks (gloo, XLA's virtual devices): the same code, whose numbers
    compare code paths, not GPUs.
    """
    from meshscope.cli.run import launch

    given |= dict.fromkeys(("batch", "window", "every", "budget"))
    given |= {"model": "tiny", "device": "auto", "baseline": True}
    return launch((), out, headless=headless, given=given)
