"""What several nodes can run together, and what a plan of theirs says of itself."""

from __future__ import annotations

from meshscope.capture.combinations import Combination
from meshscope.capture.request import Request
from meshscope.errors import InputError
from meshscope.experiment import PlannedRun


def notes(request: Request, runs: list[PlannedRun]) -> list[str]:
    """Of several nodes: which one this is, as Slurm may have said it and not a person, and where they meet."""
    here = request.nodes
    if here.count == 1:
        return []
    return [f"This is node {here.rank} of {here.count}; they meet at {', '.join(run.rendezvous for run in runs)}."]


def refuse(request: Request, one: Combination) -> None:
    """InputError for what several nodes cannot do together."""
    count = request.nodes.count
    if count == 1:
        return
    is_alone = one.workload.launch != "torchrun" and one.workload.framework != "jax"
    if one.workload.is_baseline or is_alone:
        what = "is one device" if one.workload.is_baseline else "runs in one process, on one node"
        raise InputError(f"{one.name} {what}.", hint=f"Leave it out, or leave --nodes {count} out.")
    if one.ranks % count:
        raise InputError(
            f"{one.name}: {one.ranks} ranks do not divide among {count} nodes.",
            hint=f"--ranks counts those of all nodes together: use a multiple of {count}.",
        )
    if request.is_until_stable:
        raise InputError(
            "--until-stable cannot be used with several nodes: each has a supervisor of its own, and all must agree.",
            hint="Use --steps.",
        )
