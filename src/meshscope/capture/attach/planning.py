"""What will be recorded of whom: a plan like any other, whose request says that nothing is started for it."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass

import msgspec
import psutil

from meshscope.capture import machine, places
from meshscope.capture.attach import profiler_server
from meshscope.capture.attach.targets import Target
from meshscope.errors import InputError
from meshscope.experiment import Experiment, Plan, PlannedRun
from meshscope.units import counted

KEY = "attach"
"""In a plan's ``request``: it stands there for a run that was attached to, and for no other."""

STRATEGY = "attached"
_SHORTEST_S, _LONGEST_S = 0.1, 60.0


@dataclass(frozen=True)
class Attach:
    """``window_s`` is traced of every target, all at one time, each ``every_s`` from the beginning of one window to the
    next; 0 where a key or a request is what brings one. After ``most`` windows it is over; 0 goes on until it is left.
    """

    targets: tuple[Target, ...]
    out: str = ""
    window_s: float = 2.0
    every_s: float = 30.0
    most: int = 0


def plan(asked: Attach, notes: list[str]) -> Plan:
    """Writes nothing. Raises InputError for what makes no sense, MissingPackageError for what is not installed."""
    if not _SHORTEST_S <= asked.window_s <= _LONGEST_S:
        raise InputError(
            f"A window of {asked.window_s:g} s makes no sense.",
            hint=f"It is {_SHORTEST_S:g} to {_LONGEST_S:g} s: use --window.",
        )
    if any(target.door == "profiler server" for target in asked.targets):
        profiler_server.require()
    out = places.free(asked.out) if asked.out else places.default_folder(STRATEGY)
    jobs = by_job(asked.targets)
    runs = [_planned(name, targets) for name, targets in jobs.items()]
    return Plan(
        t0_unix_ns=time.time_ns(),
        runs=runs,
        ranks=sum(run.ranks for run in runs),
        model="",
        request={"out": str(out), KEY: msgspec.to_builtins(dataclasses.asdict(asked))},
        notes=notes,
    )


def from_plan(plan: Plan) -> Attach:
    return msgspec.convert(plan.request[KEY], Attach)


def by_job(targets: tuple[Target, ...]) -> dict[str, tuple[Target, ...]]:
    """Strategy name → the targets of one recording, by rank; ranks that nothing tells are given out in order."""
    jobs: dict[str, list[Target]] = {}
    for target in targets:
        jobs.setdefault(target.job, []).append(target)
    names = [STRATEGY] if len(jobs) == 1 else [f"{STRATEGY} {job}" for job in jobs]
    return {name: _ranked(found) for name, found in zip(names, jobs.values(), strict=True)}


def _ranked(targets: list[Target]) -> tuple[Target, ...]:
    told = [target.rank for target in targets]
    if targets[0].framework == "torch" and -1 not in told and len(set(told)) == len(told):
        return tuple(sorted(targets, key=lambda target: target.rank))
    ordered = sorted(targets, key=lambda target: (target.pid, target.address))
    return tuple(dataclasses.replace(target, rank=rank) for rank, target in enumerate(ordered))


def _planned(name: str, targets: tuple[Target, ...]) -> PlannedRun:
    first = targets[0]
    return PlannedRun(
        strategy=name,
        title=f"{counted(len(targets), 'process', 'processes')} of {_what(first)}, attached to",
        framework=first.framework,
        folder=name.replace(" ", "-").replace(":", "-").replace("/", "-"),
        device_kind=first.device_kind,
        ranks=_ranks(targets),
    )


def _what(target: Target) -> str:
    """The script that runs there, or the address."""
    words = [word for word in target.command.split() if word.endswith(".py")]
    return words[0].rpartition("/")[2] if words else target.address or f"pid {target.pid}"


def _ranks(targets: tuple[Target, ...]) -> int:
    """0 for JAX: how many devices a process has, its traces tell."""
    if targets[0].framework != "torch":
        return 0
    return max(*(target.world for target in targets), *(target.rank + 1 for target in targets))


def experiment(planned: PlannedRun, targets: tuple[Target, ...]) -> Experiment:
    """The head of a recording of processes that somebody else started."""
    return Experiment(
        t0_unix_ns=time.time_ns(),
        strategy=planned.strategy,
        title=planned.title,
        framework=planned.framework,
        ranks=planned.ranks,
        device_kind=planned.device_kind,
        model="",
        is_attached=True,
        cores=_cores(targets),
        host_cores=machine.host_cores(),
        host=machine.host(),
        command=targets[0].command.split() if targets[0].command else [],
    )


def _cores(targets: tuple[Target, ...]) -> int:
    """How many cores they may use together; 0 where that is not told."""
    cores: set[int] = set()
    for target in targets:
        try:
            cores.update(psutil.Process(target.pid).cpu_affinity() if target.pid > 0 else ())
        except (psutil.Error, OSError):
            return 0
    return min(len(cores), len(machine.cores())) if cores else 0
