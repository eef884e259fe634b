"""The processes of torch and JAX on this machine, and by which door each can be attached to.

Only what the system tells of them is looked at: their libraries, environment and listening ports. Nothing is sent to a
port here: behind it may be a store or a transport of the job, which a stray byte could break.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

_PROC = Path("/proc")
_LIBRARIES = {"libtorch_cpu.so": "torch", "libjax_common.so": "jax", "xla_extension.so": "jax"}
_LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "torch/distributed/run.py",
              "torch/distributed/launch.py")  # fmt: skip
_HELPERS = ("resource_tracker", "compile_worker", "multiprocessing.forkserver")
_OWN_RANK = "meshscope.capture.workers.start"
_ACCELERATORS = {"/dev/nvidia": "gpu", "/dev/kfd": "gpu", "/dev/accel": "tpu", "/dev/vfio": "tpu"}
_NO_DEVICE = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset", "/dev/nvidia-caps", "/dev/vfio/vfio")
_LONGEST = 200


@dataclass(frozen=True)
class Candidate:
    """A process that has loaded torch or JAX.

    ``rank`` and ``world`` are what its environment says, −1 and 0 where it says nothing. ``ports`` are those on which
    it listens. ``has_daemon``: it was started with ``KINETO_USE_DAEMON``; ``socket_dir`` is where its socket is then,
    "" for the usual place. ``recording`` is the folder of the meshscope run that it is a rank of, "" for others.
    ``launcher`` is the process id of the torchrun above it, −1 without one. ``began_s`` tells it from a later process
    of the same number.
    """

    pid: int
    frameworks: tuple[str, ...]
    command: str
    rank: int = -1
    world: int = 0
    ports: tuple[int, ...] = ()
    has_daemon: bool = False
    socket_dir: str = ""
    device_kind: str = "cpu"
    recording: str = ""
    launcher: int = -1
    began_s: float = 0.0

    @property
    def door(self) -> str:
        """``kineto`` or ``profiler server``; "" for a process that can only be attached to by a port that is named."""
        if self.recording:
            return ""
        if "torch" in self.frameworks and self.has_daemon:
            return "kineto"
        return "profiler server" if "jax" in self.frameworks and len(self.ports) == 1 else ""

    @property
    def refusal(self) -> tuple[str, str]:
        """Why it cannot be attached to by its number alone, and what to do; empty where it can."""
        if self.door:
            return "", ""
        if self.recording:
            return "recorded by meshscope already", f"Watch it: meshscope watch {shlex.quote(self.recording)}"
        if "jax" in self.frameworks:
            return self._without_server()
        return (
            "started without KINETO_USE_DAEMON=1",
            "Start it with KINETO_USE_DAEMON=1 in its environment; or, if it has called "
            "torch.distributed.debug.start_debug_server, attach to the HOST:PORT of its worker server.",
        )

    def _without_server(self) -> tuple[str, str]:
        if len(self.ports) > 1:
            ports = ", ".join(map(str, self.ports))
            why = f"it listens on ports {ports}, of which one at most is a profiler server"
            return why, "Name the profiler's: meshscope attach localhost:PORT"
        return (
            "it has no profiler server",
            "Call jax.profiler.start_server(9999) in it before it trains, then: meshscope attach localhost:9999",
        )


def candidates() -> tuple[Candidate, ...]:
    """Those that this user may look into, by process id. Launchers, data loaders and the like are left out."""
    found: dict[int, Candidate] = {}
    parents: dict[int, int] = {}
    launchers: set[int] = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            parents[process.pid] = process.ppid()
            line = process.cmdline()
            if is_launcher(line):
                launchers.add(process.pid)
            elif process.pid != os.getpid() and (one := _candidate(process, line)) is not None:
                found[process.pid] = one
    return tuple(_placed(found, parents, launchers))


def is_launcher(line: Iterable[str]) -> bool:
    """torchrun: it starts the ranks, polls like them, and trains nothing."""
    return any(Path(word).name == "torchrun" or word in _LAUNCHERS or word.endswith(_LAUNCHERS[3:]) for word in line)


def _placed(found: Mapping[int, Candidate], parents: Mapping[int, int], launchers: set[int]) -> Iterator[Candidate]:
    """Without copies that a process made of itself (data loaders), each with the launcher above it."""
    for pid, one in sorted(found.items()):
        above = found.get(parents.get(pid, -1))
        if above is not None and above.command == one.command and above.rank == one.rank:
            continue
        launcher = next((up for up in _ancestors(pid, parents) if up in launchers), -1)
        yield Candidate(**(vars(one) | {"launcher": launcher}))


def _ancestors(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    seen = {pid}
    while (pid := parents.get(pid, 0)) > 1 and pid not in seen:
        seen.add(pid)
        yield pid


def _candidate(process: psutil.Process, line: list[str]) -> Candidate | None:
    frameworks = _frameworks(process.pid)
    if not frameworks or any(helper in word for word in line for helper in _HELPERS):
        return None
    environment = _environment(process)
    return Candidate(
        pid=process.pid,
        frameworks=frameworks,
        command=_words(line),
        rank=_number(environment, "RANK", -1),
        world=_number(environment, "WORLD_SIZE", 0),
        ports=listening(process),
        # As libkineto reads it: any value at all.
        has_daemon="KINETO_USE_DAEMON" in environment,
        socket_dir=environment.get("KINETO_IPC_SOCKET_DIR", ""),
        device_kind=_device_kind(process.pid),
        recording=_recording(line),
        began_s=process.create_time(),
    )


def _frameworks(pid: int) -> tuple[str, ...]:
    """By the libraries that it has mapped; none where they cannot be looked at."""
    try:
        maps = (_PROC / str(pid) / "maps").read_text(errors="replace")
    except OSError:
        return ()
    return tuple(dict.fromkeys(framework for library, framework in _LIBRARIES.items() if f"/{library}" in maps))


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def _words(line: list[str]) -> str:
    """The command line, without where its interpreter lies."""
    return shlex.join([Path(line[0]).name, *line[1:]])[:_LONGEST] if line else ""


def _number(environment: Mapping[str, str], name: str, otherwise: int) -> int:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 7 else otherwise


def listening(process: psutil.Process) -> tuple[int, ...]:
    """The TCP ports on which a process listens."""
    try:
        sockets = process.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return ()
    return tuple(sorted({socket.laddr.port for socket in sockets if socket.status == psutil.CONN_LISTEN}))


def _device_kind(pid: int) -> str:
    """By the accelerators that it holds open."""
    try:
        held = [os.readlink(entry) for entry in (_PROC / str(pid) / "fd").iterdir()]
    except OSError:
        return "cpu"
    used = [path for path in held if path.startswith(tuple(_ACCELERATORS)) and path not in _NO_DEVICE]
    return next((kind for start, kind in _ACCELERATORS.items() for path in used if path.startswith(start)), "cpu")


def _recording(line: list[str]) -> str:
    if _OWN_RANK not in line:
        return ""
    return next((word.partition("=")[2] for word in line if word.startswith("--recording=")), "a folder of its own")
