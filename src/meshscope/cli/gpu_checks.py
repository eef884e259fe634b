"""``meshscope doctor --gpu``: the GPU paths, run for real on a user's machine, and a report of what held.

The same checks are the tests marked ``gpu``. Each is a claim about one recording and returns the figures it
rests on; it raises CheckFailed with the figures when the claim does not hold.
"""

from __future__ import annotations

import math
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from meshscope import __version__
from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.devices import devices
from meshscope.analysis.memory import memory
from meshscope.analysis.steps import steps
from meshscope.capture import launch
from meshscope.cli.checkup import nvidia_gpus
from meshscope.errors import InputError
from meshscope.run import Gallery, Run
from meshscope.units import duration, percent, printable, size

STRATEGIES = ("ddp", "fsdp", "pmap", "pjit")
_PATIENCE_S = 900


class CheckFailed(Exception):  # noqa: N818  # a result, not a fault of the program
    """The claim does not hold; the message carries the figures."""


@dataclass(frozen=True)
class Outcome:
    """``state``: held, failed or not run."""

    strategy: str
    claim: str
    state: str
    figures: str


def kernels_were_traced(run: Run) -> str:
    kinds = {window.device_kind for window in run.windows}
    count = sum(window.counts.device for window in run.windows)
    return _held(kinds == {"gpu"} and count > 0, f"{count} device events on {sorted(kinds)}")


def time_adds_up(run: Run) -> str:
    ranks = breakdown(run)
    good = bool(ranks) and all(
        r.total.hidden_ns + r.total.exposed_ns == r.total.collective_ns
        and r.total.busy_ns + r.total.idle_ns == r.total.span_ns
        and r.total.compute_ns > 0
        for r in ranks
    )
    return _held(good, f"{len(ranks)} ranks, compute {[duration(r.total.compute_ns) for r in ranks]}")


def collectives_were_seen(run: Run) -> str:
    found = [r.total.collective_ns for r in breakdown(run)]
    needed = run.experiment.ranks > 1
    return _held(not needed or (bool(found) and all(found)), f"per rank {[duration(ns) for ns in found]}")


def memory_was_measured(run: Run) -> str:
    peaks = [rank.peak_bytes for rank in memory(run)]
    return _held(bool(peaks) and all(peaks), f"peaks {[size(p) if p else None for p in peaks]}")


def sensors_answered(run: Run) -> str:
    answer = devices(run)
    gpu = sorted({f.field for f in answer.fields if f.device.startswith("gpu")})
    refused = sorted({field for _, field, _ in answer.failed})
    return _held("utilization_frac" in gpu, f"read {gpu}, refused {refused}")


def profiling_is_cheap(run: Run) -> str:
    cost = steps(run).profiler_cost_frac
    return _held(not math.isnan(cost), f"profiling cost {percent(cost)} of training time")


CHECKS: tuple[Callable[[Run], str], ...] = (
    kernels_were_traced,
    time_adds_up,
    collectives_were_seen,
    memory_was_measured,
    sensors_answered,
    profiling_is_cheap,
)


def _held(good: bool, figures: str) -> str:  # noqa: FBT001
    if not good:
        raise CheckFailed(figures)
    return figures


def record(folder: Path, strategy: str) -> Run:
    """Run one strategy on the GPUs of this machine, tiny model, and return its recording."""
    options = ("--device", "gpu")
    launch.start(
        folder, launch.plan(launch.Request(strategies=(strategy,), steps=30, out=str(folder), options=options))
    )
    gallery = Gallery(folder)
    deadline = time.monotonic() + _PATIENCE_S
    while gallery.end_unix_ns is None and time.monotonic() < deadline:
        time.sleep(0.5)
        gallery.at(time.time_ns())
    _, runs = gallery.at(time.time_ns())
    if not runs:
        raise CheckFailed("the run left no recording")
    return runs[0]


def checked(strategy: str, folder: Path) -> tuple[Outcome, ...]:
    """Every check on one strategy's real run."""
    try:
        run = record(folder, strategy)
    except (InputError, CheckFailed) as error:
        return (Outcome(strategy, "runs", "not run", str(error)),)
    return tuple(_outcome(strategy, check, run) for check in CHECKS)


def _outcome(strategy: str, check: Callable[[Run], str], run: Run) -> Outcome:
    claim = check.__name__.replace("_", " ")
    try:
        return Outcome(strategy, claim, "held", check(run))
    except CheckFailed as failed:
        return Outcome(strategy, claim, "failed", str(failed))


def run_and_report(path: Path) -> int:
    """Run everything, write a Markdown report, and say where it is. Exit code 1 when a check failed."""
    gpus = nvidia_gpus()
    if not gpus:
        raise InputError("This machine shows no NVIDIA GPU.", hint="Run meshscope doctor to see what is missing.")
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="meshscope-gpu-") as scratch:
        for strategy in STRATEGIES:
            click.echo(f"running {strategy} …")
            outcomes += checked(strategy, Path(scratch) / strategy)
    path.write_text(report(outcomes, gpus), encoding="utf-8")
    failed = [outcome for outcome in outcomes if outcome.state != "held"]
    click.echo(f"{len(outcomes) - len(failed)} of {len(outcomes)} checks held; report in {path}")
    return 1 if failed else 0


def report(outcomes: list[Outcome], gpus: tuple[str, ...]) -> str:
    """The report: device, date and versions first, so that a README can quote it."""
    head = [
        f"# meshscope {__version__} on {len(gpus)} × {printable(gpus[0])}",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, {platform.platform()}",
        "",
        "| strategy | claim | state | figures |",
        "|---|---|---|---|",
    ]
    rows = [f"| {o.strategy} | {o.claim} | {o.state} | {printable(o.figures).replace('|', '/')} |" for o in outcomes]
    return "\n".join([*head, *rows, ""])
