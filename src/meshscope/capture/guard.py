"""``python -m meshscope.capture.guard --parent PID [--cores 0,1] -- COMMAND…``: becomes COMMAND, tied to PID.

A wrapper rather than ``preexec_fn``: that runs Python between fork and exec in a process with threads, where it may
deadlock. The command finds its own process id in ``MESHSCOPE_LAUNCHER_PID``, so the ranks that torchrun forks can
tell whether the parent they see is still the one that was meant.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from meshscope.capture import lifeline

_LOOK_EVERY_S = 0.2


def main(argv: Sequence[str] | None = None) -> int:
    """Does not return where the kernel ties processes together; elsewhere stays, as the command's parent."""
    asked = _parser().parse_args(argv)
    if asked.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, asked.cores)
    os.environ[lifeline.PARENT_VARIABLE] = str(os.getpid())
    if not lifeline.asks_kernel():
        return _stay(asked.command, asked.parent)
    if not lifeline.is_orphan(asked.parent):
        os.execvp(asked.command[0], asked.command)
    return 1


def command(parent: int, line: Sequence[str], *, cores: Sequence[int] = ()) -> list[str]:
    """The guarded form of a command line, for a child of process ``parent``."""
    bound = ["--cores", ",".join(map(str, cores))] if cores else []
    return [sys.executable, "-m", "meshscope.capture.guard", "--parent", str(parent), *bound, "--", *line]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="guard")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--cores", type=_numbers, default=())
    parser.add_argument("command", nargs="+")
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _stay(line: Sequence[str], parent: int) -> int:
    child = subprocess.Popen(line)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    while child.poll() is None:
        if lifeline.is_orphan(parent):
            child.kill()
        time.sleep(_LOOK_EVERY_S)
    return child.returncode


if __name__ == "__main__":
    sys.exit(main())
