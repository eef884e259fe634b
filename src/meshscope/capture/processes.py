"""Starting, watching and ending processes by id, with care for ids that the system gives out again."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from meshscope.capture.commands import Command

TERM_PATIENCE_S = 3.0
STACKS = signal.SIGUSR1
FLIGHT = signal.SIGUSR2
_LOOK_EVERY_S = 0.05


def started(command: Command, log: Path) -> subprocess.Popen[bytes]:
    """A guarded child; what it prints goes to ``log``. Call from the main thread (see ``lifeline``)."""
    with log.open("ab") as file:
        return subprocess.Popen(
            command.guarded(), env=command.environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )


def known(pid: int) -> psutil.Process | None:
    """The process with this id now; it remembers when it began, so that a later one is not taken for it."""
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_stopped(process: psutil.Process) -> bool:
    """Whether the process stands still by a signal (SIGSTOP, a debugger)."""
    try:
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    except psutil.NoSuchProcess:
        return False


def exit_code(pid: int) -> int | None:
    """The exit code of a process that has ended and that its parent has not asked about yet; negative for a signal."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return None
    if fields[0] != "Z" or int(fields[-1]) == 0:
        return None
    status = int(fields[-1])
    return -(status & 0x7F) if status & 0x7F else status >> 8


def family(pid: int) -> list[psutil.Process]:
    """A process and everything it started that still lives."""
    root = known(pid)
    if root is None:
        return []
    try:
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def end(processes: Iterable[psutil.Process], *, patience_s: float = TERM_PATIENCE_S) -> None:
    """SIGTERM to each, then SIGKILL to those that live on after ``patience_s``."""
    living = [process for process in processes if is_alive(process)]
    for process in living:
        _send(process, signal.SIGTERM)
        _send(process, signal.SIGCONT)  # A stopped process would keep the signal waiting.
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and any(map(is_alive, living)):
        time.sleep(_LOOK_EVERY_S)
    for process in filter(is_alive, living):
        _send(process, signal.SIGKILL)


def ask_for_stacks(process: psutil.Process) -> None:
    """Make a rank write where each of its threads is to its log (``workers.start`` listens for it)."""
    _send(process, STACKS)


def ask_for_flight(process: psutil.Process) -> None:
    """Make a torch rank dump its flight recorder (``workers.torch_flight`` listens for it)."""
    _send(process, FLIGHT)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def signal_name(code: int) -> str:
    """``SIGKILL`` for −9; "" for an exit code that is no signal."""
    if code >= 0:
        return ""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
