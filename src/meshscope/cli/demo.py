"""``meshscope demo``: the main job with defaults that suit this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from meshscope.cli import options


@click.command("demo")
@click.option("--out", type=options.PATH, default=None, help="Folder for the recordings.")
@click.option("--ranks", type=click.IntRange(min=1), default=None, help="Ranks (default: all GPUs, else CPU ranks).")
@click.option("--steps", type=click.IntRange(min=1), default=60, show_default=True, help="Training steps of each.")
@options.screen
def command(*, out: Path | None, headless: bool, **given: Any) -> int:
    """Record DDP, FSDP, pmap and pjit of a tiny transformer, and their single-device baselines, on this machine.

    On GPUs where there are some, else on CPU ranks (gloo, XLA's virtual devices): the same code, whose numbers
    compare code paths, not GPUs.
    """
    from meshscope.cli.run import launch

    given |= dict.fromkeys(("batch", "window", "every", "budget"))
    given |= {"model": "tiny", "baseline": True}
    return launch(possible(), out, headless=headless, given=given)


def possible() -> tuple[str, ...]:
    """The four strategies, less those whose framework is not installed (which is said)."""
    from meshscope.capture import frameworks
    from meshscope.cli.run import FOUR
    from meshscope.discovery import workloads

    needs = {w.strategy: w.framework for w in workloads()}
    absent = sorted({needs[name] for name in FOUR if frameworks.missing(needs[name])})
    for framework in absent:
        left_out = " and ".join(name for name in FOUR if needs[name] == framework)
        click.echo(f"note: {left_out} left out; they need: pip install 'meshscope[{framework}]'", err=True)
    return tuple(name for name in FOUR if needs[name] not in absent) or FOUR
