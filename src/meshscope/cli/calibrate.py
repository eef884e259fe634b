"""``meshscope calibrate``: a minute of matrix products, copies and collectives, kept for ``meshscope advise``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from meshscope.cli import options

if TYPE_CHECKING:
    from meshscope.advisor.bench import Bench

_NAME = r"[a-z][a-z0-9]{0,30}"
_BUSY_FRAC = 0.3


@click.command("calibrate")
@click.option(
    "--framework", type=click.Choice(["torch", "jax"]), default="torch", show_default=True, help="What measures."
)
@click.option("--ranks", type=click.IntRange(1, 64), default=None, help="Ranks at once (all GPUs, else 2 CPU ranks).")
@click.option(
    "--seconds", type=click.FloatRange(1, 600), default=60.0, show_default=True, help="How long to measure, about."
)
@click.option("--name", default="this", show_default=True, help="What the device is called then: advise --devices "
              "8xNAME.")  # fmt: skip
@click.option("--out", type=options.PATH, default=None, help="Folder of the file (your folder for configuration).")
def command(*, framework: str, ranks: int | None, seconds: float, name: str, out: Path | None) -> int:
    """Measure what this machine reaches, and keep it as a description of hardware of your own.

    Afterwards: meshscope advise --model tiny --devices 2xthis. What a recording of your training says of the machine
    goes further: meshscope advise --calibration RECORDING.
    """
    import re
    import time

    from meshscope.advisor.bench import bench, described
    from meshscope.advisor.hardware import own_folder
    from meshscope.capture.frameworks import probe, require
    from meshscope.errors import InputError

    if not re.fullmatch(_NAME, name):
        raise InputError("The name is no plain word.", hint="Letters and digits, in lower case: --name this")
    require(framework)
    ranks = ranks or probe((framework,))[framework].count or 2
    click.echo(f"Measuring {framework} on {ranks} rank{'s' if ranks > 1 else ''} for about {seconds:.0f} s …", err=True)
    if busy := _busy():
        click.echo(busy, err=True)
    found = bench(framework, ranks, seconds)
    when = time.strftime("%Y-%m-%d", time.gmtime())
    path = (out or own_folder()) / f"{name}.toml"
    _write(path, described(found, name, when))
    for line in lines(found):
        click.echo(line)
    click.echo(f"\nKept in {path}. Ask: meshscope advise --model tiny --devices {found.ranks}x{name}")
    return 0


def lines(found: Bench) -> list[str]:
    """What was measured, for a person."""
    from meshscope.reports.columns import table
    from meshscope.units import printable, rate, size

    who = printable(found.device) or "CPU"
    told = [f"{who}, {found.ranks} at once, {found.threads} thread{'s' if found.threads > 1 else ''} each"]
    products = [[one.compute, f"{one.m} × {one.n} × {one.k}", rate(one.flops_per_s / 1e9)] for one in found.matmul]
    told += ["", *table(["products", "m × n × k", "GFLOP/s"], products, indent="")]
    copies = [[size(one.moved_bytes / 2), f"{one.moved_bytes / one.seconds / 1e9:.1f}"] for one in found.copy]
    told += ["", *table(["copies of", "GB/s read and written"], copies, indent="")]
    told += ["", f"an operator: {found.launch_s * 1e6:.1f} µs"]
    if found.collective:
        rows = [
            [one.kind, size(one.size_bytes), f"{one.seconds * 1e6:.0f}", f"{one.bus_bytes_per_s / 1e9:.3f}"]
            for one in found.collective
        ]
        told += ["", *table(["collectives", "size", "µs", "GB/s bus"], rows, indent="")]
    return told


def _busy() -> str:
    """A line for a machine that does other things meanwhile; "" for one that does not."""
    import os

    from meshscope.capture import machine

    load, cores = os.getloadavg()[0], len(machine.cores())
    if load < _BUSY_FRAC * cores:
        return ""
    return f"The machine is busy (load {load:.1f} on {cores} cores): what is measured is what that leaves."


def _write(path: Path, text: str) -> None:
    from meshscope.errors import InputError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}.", hint="Name a folder: --out"
        ) from error
