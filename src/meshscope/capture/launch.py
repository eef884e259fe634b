"""From a request to a plan, and from a plan to a supervisor. Everything that can be refused is refused here."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from msgspec import structs

from meshscope.capture import everything, frameworks, machine, own_models, places, scripts, together
from meshscope.capture.combinations import Combination, combinations, narrowed, request_of
from meshscope.capture.frameworks import Framework
from meshscope.capture.places import default_folder
from meshscope.capture.request import Request, Windows, as_plain, checked
from meshscope.discovery import Workload
from meshscope.errors import InputError, MissingPackageError
from meshscope.experiment import Plan, PlannedRun
from meshscope.units import counted

__all__ = ["Request", "Windows", "default_folder", "is_running", "plan", "start"]

_CPU_RANKS = 4
_CUDA_HINTS = {
    "jax": "pip install 'meshscope[cuda]'",
    "torch": "pip install torch with the CUDA build that fits your driver",
}


def plan(request: Request) -> Plan:
    """What will run, on which kind of device, with how many ranks; starts nothing but short probes.

    Raises InputError for what makes no sense and MissingPackageError for what is not installed.
    """
    checked(request)
    known = scripts.workloads(request)
    workloads, notes, absent = _installed(request, scripts.chosen(request, known))
    found = frameworks.probe(tuple(dict.fromkeys(w.framework for w in workloads)))
    _refuse_broken(found)
    ranks = max(request.ranks_each, default=request.ranks or default_ranks(found) * request.nodes.count)
    asked = combinations(request, workloads, ranks)
    sweep, able, unable = everything.able(
        request, asked, lambda one: _planned(request, one, found[one.workload.framework])
    )
    runs = [structs.replace(run, rendezvous=request.nodes.place_of(number)) for number, run in enumerate(able)]
    steps = min(scripts.resolved(narrowed(request, one.batch), one.workload, one.ranks).steps for one in sweep)
    _refuse_long_windows(request.windows, steps)
    out = places.free(request.out) if request.out else default_folder(request.model)
    settled = dataclasses.replace(
        request, ranks=ranks, out=str(out), workloads=places.as_text(scripts.folder(request), "--workloads")
    )
    return Plan(
        t0_unix_ns=time.time_ns(),
        runs=runs,
        ranks=ranks,
        model=request.model,
        request=as_plain(settled),
        notes=[
            *notes,
            *together.notes(request, runs),
            *_changed(request, sweep, runs),
            *_injected(request, sweep, runs),
            *_bound(runs, ranks),
            *_uneven(runs, found),
            *_unprofiled(request.windows, steps),
            *everything.notes(request, runs, ranks, unable),
        ],
        left_out=absent | unable,
    )


def start(folder: Path, planned: Plan, *, module: str = "meshscope.capture.supervisor") -> int:
    """Write the plan to ``folder`` and start its supervisor in a session of its own. Its process id.

    ``module`` is what supervises it: another one for processes that are attached to.

    Raises LaunchError when the folder cannot be made and InputError when it holds a run; nothing is started then.
    """
    # -P and not PYTHONSAFEPATH, which a user's own command would inherit.
    line = [sys.executable, "-P", "-m", module, str(folder)]
    with places.made(folder, planned) as log:
        child = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _STARTED[child.pid] = child
    return child.pid


_STARTED: dict[int, subprocess.Popen[bytes]] = {}


def is_running(pid: int) -> bool:
    """Whether a supervisor lives; also takes note of one that this process started and that has ended."""
    if pid in _STARTED:
        return _STARTED[pid].poll() is None
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def default_ranks(found: dict[str, Framework]) -> int:
    """All accelerators of the framework that has most; without any, four CPU ranks (two on a single core)."""
    most = max((framework.count for framework in found.values()), default=0)
    return most or (_CPU_RANKS if len(machine.cores()) > 1 else 2)


def _installed(
    request: Request, chosen: tuple[Workload, ...]
) -> tuple[tuple[Workload, ...], list[str], dict[str, str]]:
    """The workloads whose packages are here, notes, and the reasons of those that ``all`` brought in and are left out.

    A baseline that only ``single`` brought in is left out with a note as well.
    """
    kept, notes, left_out = [], [], {}
    for workload in chosen:
        is_bystander = workload.is_baseline and workload.strategy not in request.strategies
        is_bystander = is_bystander or everything.is_bystander(request, workload)
        if is_bystander and frameworks.missing(workload.framework):
            notes.append(f"{workload.strategy} is left out: {workload.framework} is not installed.")
            if scripts.ALL in request.strategies:
                left_out[workload.strategy] = f"{workload.framework} is not installed"
            continue
        frameworks.require(workload.framework)
        kept.append(workload)
    if not kept:
        raise MissingPackageError(
            "Neither torch nor JAX is installed.", hint="Install both: pip install 'meshscope[workloads]'"
        )
    return tuple(kept), notes, left_out


def _refuse_broken(found: dict[str, Framework]) -> None:
    for name, framework in found.items():
        if framework.error:
            raise MissingPackageError(
                f"{name} is installed and does not work: {framework.error}",
                hint=f"Install it again: pip install --force-reinstall 'meshscope[{name}]'",
            )


def _planned(request: Request, one: Combination, framework: Framework) -> PlannedRun:
    together.refuse(request, one)
    workload, own_ranks = one.workload, one.ranks
    if own_ranks < workload.min_ranks or own_ranks > (workload.max_ranks or own_ranks):
        most = f" and at most {workload.max_ranks}" if workload.max_ranks else ""
        raise InputError(
            f"{workload.strategy} cannot run on {own_ranks} ranks.",
            hint=f"It takes at least {workload.min_ranks}{most}: use --ranks.",
        )
    options = scripts.resolved(narrowed(request, one.batch), workload, own_ranks)
    kind = "cpu" if getattr(options, "device", "auto") == "cpu" else framework.platform
    if kind == "cpu" and getattr(options, "device", "auto") in ("cuda", "gpu"):
        raise InputError(
            f"{workload.strategy}: {workload.framework} finds no GPU here.",
            hint=f"Leave --device out to use the CPU, or: {_CUDA_HINTS[workload.framework]}",
        )
    scripts.check_kind(workload, options, kind)
    here = own_ranks // request.nodes.count
    if kind != "cpu" and here > framework.count:
        raise InputError(
            f"{workload.strategy}: {here} ranks need {here} devices, and there are {framework.count}.",
            hint=f"Use --ranks {framework.count}, or --device cpu to compare code paths on CPU ranks.",
        )
    facts = own_models.asked(workload, request.model, options, own_ranks)
    return PlannedRun(
        strategy=one.name,
        workload=workload.strategy if one.name != workload.strategy else "",
        title=_title(workload, options),
        framework=workload.framework,
        folder=one.folder,
        device_kind=kind,
        is_baseline=workload.is_baseline,
        ranks=own_ranks,
        batch=(one.batch or 0) if request.batch_each else 0,
        devices=list(framework.names[:here]) if kind != "cpu" else [],
        parameters=facts.parameters,
        flop_per_sample=facts.flop_per_sample,
        flop_how=facts.how,
        flop_why=facts.why,
    )


def _title(workload: Workload, options: Any) -> str:
    """With the faults that were put in, so that nobody takes the run for a clean one."""
    injected = scripts.faults(workload, options)
    return f"{workload.title}, with injected {' and '.join(injected)}" if injected else workload.title


def _injected(request: Request, sweep: tuple[Combination, ...], runs: list[PlannedRun]) -> list[str]:
    """A note per strategy that has faults put in: what they do."""
    notes = []
    for workload, run in zip((one.workload for one in sweep), runs, strict=True):
        options = scripts.resolved(request_of(request, run), workload, run.ranks)
        if effects := scripts.fault_effects(workload, options, run.ranks):
            words = " and ".join(scripts.faults(workload, options))
            notes.append(f"{run.strategy}: injected {words}: {'; '.join(effects)}. This is no clean run.")
    return notes


def _changed(request: Request, sweep: tuple[Combination, ...], runs: list[PlannedRun]) -> list[str]:
    """A note per strategy that its options make into something else."""
    return [
        f"{run.strategy}: {note}."
        for one, run in zip(sweep, runs, strict=True)
        for note in scripts.notes(one.workload, scripts.resolved(request_of(request, run), one.workload, run.ranks))
    ]


def _refuse_long_windows(windows: Windows, steps: int) -> None:
    """InputError when no window fits into the run, whose first step is never profiled. A run of one step may be."""
    if windows.active >= max(2, steps):
        longest = max(1, steps - 1)
        raise InputError(
            f"A window of {windows.active} steps does not fit into a run of {steps}, whose first step is not profiled.",
            hint=f"Use --window {longest}, or --steps {windows.active + 1} or more.",
        )


def _unprofiled(windows: Windows, steps: int) -> list[str]:
    if windows.active and steps < 2:
        return ["Nothing is profiled in a run of one step: the first step only warms up."]
    return []


def _bound(runs: list[PlannedRun], ranks: int) -> list[str]:
    """A note on what a rank has in a sweep over ranks on CPU: as much in a small run as in the largest."""
    if not any(run.device_kind == "cpu" and not run.is_baseline and run.ranks < ranks for run in runs):
        return []
    share = counted(machine.threads_per_rank(ranks), "core")
    return [f"A CPU rank has the share of one of {ranks} ranks in every run: {share}, as far as there are so many."]


def _uneven(runs: list[PlannedRun], found: dict[str, Framework]) -> list[str]:
    """A note per framework that runs on CPU while another one runs on accelerators."""
    if len({run.device_kind for run in runs}) < 2:
        return []
    on_cpu = dict.fromkeys(run.framework for run in runs if run.device_kind == "cpu")
    others = ", ".join(name for name, framework in found.items() if framework.count)
    return [
        f"{name} is CPU-only here and stands beside {others} on accelerators: shown, never ranked. "
        f"To mend it: {_CUDA_HINTS[name]}"
        for name in on_cpu
    ]
