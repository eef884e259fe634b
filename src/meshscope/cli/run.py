"""``meshscope run``: record strategies, on the screen or without one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from meshscope.cli import options, own

_MODELS = (
    "Transformers tiny, 125m, 350m and 1.3b, moe (a mixture of experts), resnet50, mlp, or your own as "
    "package.module:factory, from this folder or installed."
)
_NODES = ("nodes", "node_rank", "rendezvous")
FOUR = ("ddp", "fsdp", "pmap", "pjit")


@click.command("run", cls=own.OrCommand)
@click.argument("strategies", nargs=-1, metavar="[STRATEGY]... [-- COMMAND...]")
@click.option("--model", default="tiny", show_default=True, metavar="MODEL", help=_MODELS)
@click.option(
    "--ranks", type=options.COUNTS, default=None, help="Ranks (default: all GPUs, else CPU ranks); 1,2,4 is a sweep."
)
@click.option("--steps", type=click.IntRange(min=1), default=60, show_default=True, help="Training steps of each.")
@click.option("--batch", type=options.COUNTS, default=None, help="Global batch in samples; 8,16,32 is a sweep.")
@click.option("--out", type=options.PATH, default=None, help="Folder for the recordings.")
@click.option("--baseline/--no-baseline", default=False, help="Run one device of each framework too, to compare with.")
@click.option("--window", type=click.IntRange(min=1), default=None, help="Profiled steps per window.")
@click.option(
    "--every",
    type=click.IntRange(min=2),
    default=None,
    help="Steps from one window to the next (default: as the budget allows).",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, 1),
    default=None,
    help="Share of time that windows after the second may cost (0.04).",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=1),
    default=None,
    help="Seconds without a step after which a rank has hung (120, or ten of its longest steps).",
)
@click.option(
    "--until-stable",
    is_flag=True,
    help="End each once the 95 % interval of its median step time is under 2 % of it; --steps is the limit.",
)
@click.option(
    "--nodes", type=click.IntRange(min=1), default=None, help="Machines that run it together (Slurm's: none)."
)
@click.option("--node-rank", type=click.IntRange(min=0), default=None, help="Which of them this is, from 0.")
@click.option(
    "--rendezvous", metavar="HOST:PORT", default=None, help="Where they meet, on node 0: ports from there on."
)
@options.workload
@options.screen
def command(*, strategies: tuple[str, ...], out: Path | None, headless: bool, **given: Any) -> int:
    """Run STRATEGIES one after another on the same model, batch and data, and record each.

    \b
    Strategies: ddp, zero1, fsdp, fsdp1, hsdp, tp, fsdp-tp, cp, dp, ep,
    pp-gpipe, pp-1f1b, pp-interleaved (PyTorch);
    pmap, shard-map, shard-map-fsdp, pjit, pjit-dp, pjit-tp, pjit-2d, jax-pp,
    jax-ep (JAX); single (one device of each); all (what this machine can run).
    Without any: ddp fsdp pmap pjit. Exit code 1 when one of them failed.

    On several nodes the same command runs on each, with its own --node-rank; srun's tasks need none of these options.
    Every node records its own ranks: meshscope analyze NODE0 NODE1 … joins them.

    \b
    meshscope run -- torchrun --nproc_per_node 2 train.py …
    records your own command as it is, with any of --out, --window, --every, --budget and the screen's options before
    the --. The exit code is then the command's.

    Lists of --ranks and --batch are a sweep: every combination is run, and scaling curves stand in the report.
    """
    if (command := own.given()) is not None:
        return own.launch(command, out, headless=headless, given=given)
    return launch(strategies or FOUR, out, headless=headless, given=given)


def launch(strategies: tuple[str, ...], out: Path | None, *, headless: bool, given: dict[str, Any]) -> int:
    """Plan, start the supervisor, and follow it on the screen or in plain lines."""
    from meshscope.capture import launch as capture
    from meshscope.cli import ending

    look = {name: given.pop(name) for name in options.LOOK}
    plan = capture.plan(request(strategies, out, given))
    folder = Path(plan.request["out"])
    supervisor_pid = capture.start(folder, plan)
    if options.draws(headless=headless):
        from meshscope.cli import screen

        return ending.outcome(screen.show(folder, **look))
    return ending.followed(folder, supervisor_pid, notes=plan.notes)


def request(strategies: tuple[str, ...], out: Path | None, given: dict[str, Any]) -> Any:
    """The capture's request from what stood on the command line; ``given`` is used up."""
    from meshscope.capture.nodes import nodes
    from meshscope.capture.request import Request

    found = windows(given)
    if given.pop("baseline"):
        strategies = (*strategies, "single")
    numbers = {name: given.pop(name) for name in ("model", "ranks", "steps", "batch")}
    for name in ("ranks", "batch"):
        if isinstance(numbers[name], tuple):
            # One number is no sweep: its runs keep the names of their strategies.
            several = {name: None, f"{name}_each": numbers[name]}
            numbers |= {name: numbers[name][0]} if len(numbers[name]) == 1 else several
    numbers["nodes"] = nodes(*(given.pop(name, None) for name in _NODES), environ=os.environ)
    numbers["is_until_stable"] = given.pop("until_stable", False)
    patience_s = given.pop("patience", None)
    if patience_s is not None:
        numbers["patience_s"] = patience_s
    return Request(
        strategies=strategies,
        out=str(out or ""),
        windows=found,
        options=options.workload_flags(given),
        **numbers,
    )


def windows(given: dict[str, Any]) -> Any:
    """When ranks profile, by ``--window``, ``--every`` and ``--budget``, which are taken out of ``given``."""
    from meshscope.capture.request import Windows

    asked = {"active": given.pop("window"), "wait": None, "budget_frac": given.pop("budget")}
    every = given.pop("every")
    if every is not None:
        # From window to window: the steps between them, the profiler's warm-up and the window itself.
        asked["wait"] = max(every - (asked["active"] or Windows.active) - Windows.warmup, 0)
    return Windows(**{name: value for name, value in asked.items() if value is not None})
