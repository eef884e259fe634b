"""What is written at the head of a recording, and the command line and environment its ranks are started with."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meshscope.capture import guard, machine, scripts
from meshscope.capture.combinations import request_of
from meshscope.capture.request import STABLE_FRAC, Request
from meshscope.capture.xla_flags import waiting_flags
from meshscope.discovery import Workload
from meshscope.experiment import Experiment, PlannedRun
from meshscope.recording.layout import LOGS

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_FLIGHT_VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
_FLIGHT_CALLS = "2000"
_NETWORK_INTERFACES = Path("/sys/class/net")


@dataclass(frozen=True)
class Command:
    """``cores`` binds the process to some cores; () leaves it on all."""

    line: tuple[str, ...]
    environment: dict[str, str]
    cores: tuple[int, ...] = ()

    def guarded(self) -> list[str]:
        """The command line as a child of this process, tied to it."""
        return guard.command(os.getpid(), self.line, cores=self.cores)


def experiment(request: Request, planned: PlannedRun) -> Experiment:
    """The head of a recording whose ranks start now."""
    workload = scripts.workloads(request)[planned.base_strategy]
    options = scripts.resolved(request_of(request, planned), workload, planned.ranks)
    return Experiment(
        t0_unix_ns=time.time_ns(),
        strategy=planned.strategy,
        workload=planned.workload,
        title=planned.title,
        framework=planned.framework,
        ranks=planned.ranks,
        device_kind=planned.device_kind,
        model=request.model,
        options=_plain(options),
        parallel_lines=workload.parallel_lines,
        parameters=planned.parameters or scripts.parameter_count(workload, options),
        flop_per_sample=planned.flop_per_sample,
        flop_how=planned.flop_how,
        flop_why=planned.flop_why,
        is_baseline=planned.is_baseline,
        planned_steps=options.steps,
        global_batch=options.batch,
        sequence_length=scripts.sequence_length(workload, options),
        threads_per_rank=_threads(request, planned) if workload.launch == "torchrun" else 0,
        cores=len(_own_cores(request, planned) or machine.cores()),
        host_cores=machine.host_cores(),
        host=machine.host(),
        versions=machine.versions() | {"python": sys.version.split()[0]},
        devices=list(planned.devices),
        faults=scripts.faults(workload, options),
        stable_frac=STABLE_FRAC if request.is_until_stable else 0.0,
        nodes=request.nodes.count,
        node_rank=request.nodes.rank,
        rendezvous=planned.rendezvous,
        command=[*_launcher(request, workload, planned), str(workload.script), *scripts.arguments(workload, options)],
    )


def command(request: Request, planned: PlannedRun, recording: Path) -> Command:
    """How the ranks of a recording are started."""
    workload = scripts.workloads(request)[planned.base_strategy]
    options = scripts.resolved(request_of(request, planned), workload, planned.ranks)
    worker = [
        "meshscope.capture.workers.start",
        f"--recording={recording}",
        f"--script={workload.script}",
        f"--check-every={request.check_every}",
        "--",
        *scripts.arguments(workload, options),
    ]
    return Command(
        line=(*_launch_line(request, workload, planned, recording), "-m", *worker),
        environment=_environment(request, planned, workload),
        cores=_own_cores(request, planned),
    )


def _own_cores(request: Request, planned: PlannedRun) -> tuple[int, ...]:
    """The cores a run is bound to; () for all of them.

    On CPU a baseline is bound to one rank's share, and a small run of a sweep to as many shares as it has ranks: else
    its ranks would have more than those of a large one, and no curve would tell what ranks are worth.
    """
    most = request.ranks or 1
    if planned.device_kind != "cpu" or not (planned.is_baseline or planned.ranks < most):
        return ()
    count = request.nodes.count
    return machine.share_of_cores(most // count, planned.ranks // count)


def _launcher(request: Request, workload: Workload, planned: PlannedRun) -> list[str]:
    """As a person would type it."""
    return ["torchrun", *_meeting(request, planned)] if workload.launch == "torchrun" else ["python"]


def _meeting(request: Request, planned: PlannedRun) -> list[str]:
    """How torchrun's agents find each other, and how many ranks each starts."""
    each = f"--nproc-per-node={planned.ranks // request.nodes.count}"
    if request.nodes.count == 1:
        return ["--standalone", each]
    nodes = [f"--nnodes={request.nodes.count}", f"--node-rank={request.nodes.rank}"]
    return [*nodes, "--rdzv-backend=static", f"--rdzv-endpoint={planned.rendezvous}", each]


def _launch_line(request: Request, workload: Workload, planned: PlannedRun, recording: Path) -> list[str]:
    if workload.launch != "torchrun":
        return [sys.executable]
    elastic = ["-m", "torch.distributed.run", *_meeting(request, planned), "--max-restarts=0"]
    # Half a second between looks leaves a killed rank a zombie for long enough to read its exit code from /proc.
    return [sys.executable, *elastic, "--monitor-interval=0.5", f"--log-dir={recording / LOGS / 'elastic'}"]


def _threads(request: Request, planned: PlannedRun) -> int:
    """A baseline stands for one rank of the others, so it gets one rank's share."""
    return machine.threads_per_rank(max(request.ranks or 1, planned.ranks) // request.nodes.count)


def _environment(request: Request, planned: PlannedRun, workload: Workload) -> dict[str, str]:
    """Ours on top of the user's, which is kept but for what would undo the plan."""
    own = {"PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false"}
    if workload.launch == "torchrun":
        own |= dict.fromkeys(_THREAD_VARIABLES, str(_threads(request, planned)))
    if planned.framework == "torch" and planned.device_kind != "cpu":
        # NCCL's flight recorder is off without a size; torch has had two names for it.
        own |= {name: os.environ.get(name, _FLIGHT_CALLS) for name in _FLIGHT_VARIABLES}
    if planned.framework == "jax":
        own["TF_CPP_MIN_LOG_LEVEL"] = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1")
        if planned.device_kind == "cpu":
            # The user's own come last, and the last one counts.
            flags = waiting_flags(machine.versions().get("jaxlib", ""), request.patience_s)
            own["XLA_FLAGS"] = f"{flags} {os.environ.get('XLA_FLAGS', '')}".strip()
            own |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(planned.ranks // request.nodes.count)}
        if request.nodes.count > 1:
            own |= {
                "JAX_COORDINATOR_ADDRESS": planned.rendezvous,
                "JAX_NUM_PROCESSES": str(request.nodes.count),
                "JAX_PROCESS_ID": str(request.nodes.rank),
            }
    if planned.device_kind == "cpu" and request.nodes.count == 1 and (_NETWORK_INTERFACES / "lo").exists():
        # The ranks are all here; without this gloo looks the host's own name up, which some machines cannot.
        own["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", "lo")
    return os.environ | own


def _plain(options: Any) -> dict[str, Any]:
    """Options as JSON can hold them; what it cannot is written as text."""
    found = dataclasses.asdict(options)
    return {name: value if isinstance(value, str | int | float | bool) else str(value) for name, value in found.items()}
