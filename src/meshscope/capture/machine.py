"""What this machine has, as far as it can be told without a framework."""

from __future__ import annotations

import os
import platform
import socket
from importlib import metadata
from pathlib import Path

_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_GPU_DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/dxg"), Path("/dev/kfd"))
_PACKAGES = ("meshscope", "torch", "jax", "jaxlib", "flax", "optax", "numpy")


def cores() -> tuple[int, ...]:
    """The numbers of the cores this process may use, fewer where a container's quota allows fewer."""
    if hasattr(os, "sched_getaffinity"):
        found = tuple(sorted(os.sched_getaffinity(0)))
    else:
        found = tuple(range(os.cpu_count() or 1))
    return found[: max(1, min(len(found), _quota(_CGROUP_QUOTA)))]


def host_cores() -> int:
    """How many cores the machine has, whoever may use them: what its utilization is a share of."""
    return os.cpu_count() or 0


def _quota(path: Path) -> int:
    """Whole cores of a cgroup's quota, rounded up; a large number where there is none."""
    try:
        allowed, period = path.read_text().split()
    except (OSError, ValueError):
        return 1 << 20
    return 1 << 20 if allowed == "max" else -(-int(allowed) // int(period))


def threads_per_rank(ranks: int) -> int:
    return max(1, len(cores()) // ranks)


def share_of_cores(ranks: int, of_them: int = 1) -> tuple[int, ...]:
    """The cores of ``of_them`` ranks out of ``ranks``: of one for a baseline, which stands for one rank."""
    return cores()[: threads_per_rank(ranks) * of_them]


def host() -> str:
    return socket.gethostname()


def cpu_name() -> str:
    """The processor as it names itself; "cpu" where nothing tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or "cpu"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "cpu")


def has_gpus() -> bool:
    """Whether a driver of NVIDIA's or AMD's GPUs is loaded; what a framework makes of it only the framework tells."""
    return any(path.exists() for path in _GPU_DRIVERS)


def versions() -> dict[str, str]:
    """Installed versions of what a run depends on, by distribution name; those missing are absent."""
    found = {name: _version(name) for name in _PACKAGES}
    return {name: version for name, version in found.items() if version}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
