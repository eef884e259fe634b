"""The checks of ``meshscope doctor``: each looks at one thing and says what it found and what mends it."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import socket
import sys
from dataclasses import dataclass
from importlib import metadata

from meshscope import config, discovery
from meshscope.capture.frameworks import PACKAGES, missing, probe
from meshscope.capture.sensors import Readings, Source
from meshscope.capture.sensors import amd as amd_sensors
from meshscope.capture.sensors import tpu as tpu_sensors
from meshscope.units import counted, printable


@dataclass(frozen=True)
class Finding:
    """``state`` is ok, warning or missing; ``mend`` is a command or an advice, empty when all is well."""

    subject: str
    state: str
    text: str
    mend: str = ""


def checkup() -> tuple[Finding, ...]:
    """Every check, in the order a person would look."""
    gpus = nvidia_gpus()
    frameworks = [framework(name, gpus) for name in PACKAGES]
    return (
        python(),
        *frameworks,
        nvml(gpus),
        amd(),
        tpu(),
        cores(),
        loopback(),
        workloads(),
        tensorboard(),
        rules(),
        terminal(),
        charset(),
    )


def python() -> Finding:
    text = f"{platform.python_version()} at {sys.executable}"
    return Finding("python", "ok", text)


def framework(name: str, gpus: tuple[str, ...] | None) -> Finding:
    """Whether a framework and what its workloads need are there, and which devices it can use."""
    lacking = missing(name)
    if lacking:
        return Finding(name, "missing", f"not installed: {', '.join(lacking)}", f"pip install 'meshscope[{name}]'")
    found = probe((name,))[name]
    if found.error:
        again = f"pip install --force-reinstall 'meshscope[{name}]'"
        return Finding(name, "missing", f"installed but does not work: {printable(found.error)}", again)
    seen = f"{found.count} × {printable(', '.join(sorted(set(found.names))))}" if found.names else found.platform
    text = f"{found.version}, {seen}"
    if gpus and found.platform == "cpu":
        return Finding(name, "warning", f"{text}: does not see the NVIDIA GPUs of this machine", _GPU_MEND[name])
    return Finding(name, "ok", text)


_GPU_MEND = {
    "jax": "pip install 'meshscope[cuda]'",
    "torch": "install torch's CUDA build (pip install --force-reinstall torch) and check nvidia-smi",
}


def nvidia_gpus() -> tuple[str, ...] | None:
    """Names of the GPUs that NVML lists; None where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        return tuple(str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(i))) for i in range(count))
    except pynvml.NVMLError:
        return None


def nvml(gpus: tuple[str, ...] | None) -> Finding:
    if gpus is None:
        return Finding(
            "nvml", "warning", "no NVIDIA driver: CPU ranks only, no GPU sensors", "nothing, on a CPU machine"
        )
    return Finding("nvml", "ok", f"{len(gpus)} GPUs: {printable(', '.join(gpus))}")


def amd() -> Finding:
    return _sensors("amd", "no AMD driver", amd_sensors.opened())


def tpu() -> Finding:
    return _sensors("tpu", "no TPU", tpu_sensors.opened())


def _sensors(subject: str, absent: str, source: Source | None) -> Finding:
    """What a source of readings says of its devices when it is asked once."""
    if source is None:
        return Finding(subject, "ok", absent)
    readings = Readings()
    source.read(readings)
    source.close()
    whole = [why for _, field, why in readings.failed if field == "everything"]
    if whole:
        return Finding(subject, "warning", printable(whole[0]), f"pip install 'meshscope[{subject}]', if it is missing")
    said = f"{counted(len(readings.values), 'device')} with sensors"
    return Finding(subject, "ok", said if readings.values else "its sensors answer while a run holds the chips")


def cores() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = f"{usable} usable"
    if usable < 2:
        return Finding(
            "cores", "warning", f"{text}: ranks take turns, overlap cannot be seen", "use a machine with more"
        )
    return Finding("cores", "ok", text)


def loopback() -> Finding:
    """Gloo resolves the host's own name; a name that resolves nowhere makes ranks time out."""
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return Finding(
            "network",
            "warning",
            f"the host name {printable(name)} does not resolve",
            f"add '127.0.1.1 {name}' to /etc/hosts",
        )
    return Finding("network", "ok", f"{printable(name)} is {address}")


def workloads() -> Finding:
    names = [workload.strategy for workload in discovery.workloads()]
    return Finding("workloads", "ok", ", ".join(names))


def tensorboard() -> Finding:
    version = _version("tensorboard-plugin-profile")
    if version is None:
        return Finding("tensorboard", "warning", "no profile plugin (optional)", "pip install 'meshscope[tensorboard]'")
    return Finding("tensorboard", "ok", f"profile plugin {version}")


def rules() -> Finding:
    """The user's own rules for kernels; a file that cannot be used has ended the command before this."""
    found = config.current()
    if not found.source:
        return Finding("rules", "ok", "the built-in ones (no configuration file)")
    return Finding("rules", "ok", f"{counted(len(found.kernels), 'rule')} of yours from {printable(found.source)}")


def terminal() -> Finding:
    size = shutil.get_terminal_size()
    term, truecolor = os.environ.get("TERM", ""), os.environ.get("COLORTERM", "")
    text = f"{size.columns}×{size.lines}, TERM={printable(term) or '–'}, COLORTERM={printable(truecolor) or '–'}"
    if not sys.stdout.isatty():
        return Finding("terminal", "warning", f"stdout is no terminal ({text})", "run it in a terminal for the screen")
    if size.columns < 80 or size.lines < 24:
        return Finding("terminal", "warning", f"{text}: smaller than 80×24", "enlarge the window")
    if "256" not in term and not truecolor:
        return Finding("terminal", "warning", f"{text}: 16 colours", "export TERM=xterm-256color, if the terminal can")
    return Finding("terminal", "ok", text)


def charset() -> Finding:
    encoding = locale.getpreferredencoding(do_setlocale=False)
    if encoding.lower().replace("-", "") != "utf8":
        return Finding("locale", "warning", f"{encoding}: drawn with ASCII characters", "export LC_ALL=C.UTF-8")
    return Finding("locale", "ok", encoding)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
