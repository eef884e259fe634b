"""A process that must not outlive its parent. Standard library only: it runs before anything heavy is imported."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

PARENT_VARIABLE = "MESHSCOPE_LAUNCHER_PID"
_PR_SET_PDEATHSIG = 1
_LOOK_EVERY_S = 0.5


def asks_kernel() -> bool:
    """Ask for SIGKILL when the parent dies. False where the kernel has no such thing (macOS).

    It survives exec and not fork, so every process asks for itself. The kernel watches the parent's *thread* that
    forked: the supervisor starts everything from its main thread.
    """
    if sys.platform != "linux":
        return False
    refused = ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return not refused


def is_orphan(parent: int) -> bool:
    return os.getppid() != parent


def tie_to(parent: int) -> None:
    """Die with ``parent``, at once if it is gone already; a thread looks after it where the kernel does not."""
    if not asks_kernel():
        threading.Thread(target=_look_after, args=(parent,), daemon=True).start()
    if is_orphan(parent):
        os._exit(1)


def _look_after(parent: int) -> None:
    while not is_orphan(parent):
        time.sleep(_LOOK_EVERY_S)
    os._exit(1)
