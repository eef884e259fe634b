"""Options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class _Path(click.Path):
    """A path that is named: an empty one (an unset variable of a script) would stand for the working directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty.", param, ctx)
        return super().convert(value, param, ctx)


class _Source(_Path):
    """Something to read: a path, or a URL, of which a copy is made."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "://" in value:
            from meshscope.cli import remote

            if remote.is_url(value):
                return remote.fetched(value)
        return super().convert(value, param, ctx)


PATH = _Path(path_type=Path)
SOURCE = _Source(path_type=Path)


class _Counts(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on
    """One count, or several with commas between."""

    name = "N[,N...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        found = tuple(int(part) if part.strip().isdecimal() else 0 for part in value.split(","))
        if min(found) < 1:
            self.fail(f"{value!r} is neither a count of 1 or more nor several with commas between.", param, ctx)
        if len(set(found)) < len(found):
            self.fail(f"{value!r} names a count twice.", param, ctx)
        return found


COUNTS = _Counts()

RUNS = Path("meshscope-runs")
LOOK = ("is_ascii", "no_mouse", "theme", "colours", "fps")

# Flags that go to the workload as they are; workloads/options.py says what they mean and checks them.
_WORKLOAD: tuple[tuple[str, Any, str], ...] = (
    ("layers", int, "Transformer blocks."),
    ("width", int, "Model width."),
    ("heads", int, "Attention heads."),
    ("vocab", int, "Vocabulary size."),
    ("seq", int, "Sequence length in tokens."),
    ("experts", int, "Experts in each block of a mixture (moe)."),
    ("top-k", int, "Experts that a token goes to (moe)."),
    ("image", int, "Pixels along a side of an image (resnet50, mlp)."),
    ("classes", int, "Classes of images (resnet50, mlp)."),
    (
        "data",
        click.Choice(["synthetic", "text", "digits"]),
        "Samples drawn at random, Python's own manual as bytes, or scikit-learn's digits.",
    ),
    (
        "wrap",
        str,
        "What FSDP gathers piece by piece: auto, a module's class, or size:MILLIONS of parameters.",
    ),
    ("lr", float, "Learning rate of AdamW."),
    ("seed", int, "Seed of weights and data."),
    ("precision", click.Choice(["fp32", "bf16"]), "Arithmetic of forward and backward."),
    ("accumulate", int, "Micro-batches per step (gradient accumulation)."),
    ("device", click.Choice(["auto", "cpu", "gpu"]), "Where ranks run (default: GPUs where there are some)."),
    ("bucket-mb", float, "DDP: size of a gradient bucket in MB."),
    ("tensor", int, "tp, fsdp-tp: ranks that share each layer."),
    ("compress", click.Choice(["none", "fp16", "bf16", "powersgd"]), "DDP: what gradients are all-reduced as."),
    ("dropout", float, "Share of each block's output that is dropped in training."),
)


def workload(command: Command) -> Command:
    """The workload's own options; absent ones stay with the preset."""
    for name, kind, text in reversed(_WORKLOAD):
        command = click.option(f"--{name}", type=kind, default=None, help=text)(command)
    command = click.option(
        "--inject",
        multiple=True,
        metavar="FAULT[:AMOUNT]",
        help="A fault to put in, to see how it shows: straggler[:MS], slow-input[:MS], memory-leak[:MIB], hang[:STEP], "
        "unsynced-gradients, ragged-batch, same-key, small-buckets or new-lengths[:STEPS]. May be given several times.",
    )(command)
    for name, text in (
        ("checkpoint-activations", "Recompute activations in backward instead of keeping them."),
        ("compile", "torch.compile the model."),
        ("no-bucket-view", "DDP: gradients beside the buckets, not in them."),
        ("static-graph", "DDP: tell it that every step uses the same parameters."),
        ("sync-every-micro-batch", "DDP: average gradients after each micro-batch (without no_sync)."),
    ):
        command = click.option(f"--{name}", name.replace("-", "_"), is_flag=True, help=text)(command)
    return command


def workload_flags(given: dict[str, Any]) -> tuple[str, ...]:
    """Back to command-line flags, for the workload's own parser."""
    flags: list[str] = []
    for name, value in given.items():
        if value is None or value is False or value == ():
            continue
        flags.append(f"--{name.replace('_', '-')}")
        if value is not True:
            flags.append(",".join(value) if isinstance(value, tuple) else str(value))
    return tuple(flags)


def screen(command: Command) -> Command:
    """How the terminal is used."""
    for decorate in (
        click.option("--headless", is_flag=True, help="Plain lines instead of the screen (also when piped)."),
        click.option("--ascii/--no-ascii", "is_ascii", default=None, help="Draw with ASCII characters only."),
        click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal."),
        click.option(
            "--theme",
            type=click.Choice(["auto", "dark", "light"]),
            default=None,
            help="The background (default: as last chosen on a screen, else auto).",
        ),
        click.option(
            "--colours",
            "--colors",
            type=click.Choice(["none", "16", "256", "truecolor"]),
            default=None,
            help="Instead of what the terminal announces.",
        ),
        click.option("--fps", type=click.FloatRange(0.5, 60), default=None, help="Looks per second (default: 4)."),
    ):
        command = decorate(command)
    return command


def draws(*, headless: bool) -> bool:
    """Whether there is a person at a terminal, or before a browser, who wants the screen."""
    from meshscope.ui.look import is_served

    is_seen = is_served(os.environ) or all(
        stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)
    )
    return not headless and is_seen
