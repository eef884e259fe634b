"""A question to a process of its own that may take only so long and so much memory."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

import psutil

_LOOK_EVERY_S = 0.25
_TAIL_BYTES = 8192


@dataclass(frozen=True)
class Limits:
    """``patience_s`` of wall time, ``memory_bytes`` of resident memory of the process and what it starts."""

    patience_s: float = 600.0
    memory_bytes: float = 8 * 2.0**30


@dataclass(frozen=True)
class Said:
    """``output`` as it stands on standard output. ``words`` are the last line of standard error. ``over`` is
    ``"time"`` or ``"memory"`` where a limit ended it."""

    output: bytes
    words: str
    exit_code: int
    over: str = ""


def asked(line: Sequence[str], environ: Mapping[str, str], limits: Limits) -> Said:
    """What the process said; it is gone when this returns or is interrupted, and so is what it has started."""
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            line,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=told,
            start_new_session=True,
        )
        try:
            output, over = _waited(process, limits)
        finally:
            _ended(process)
        return Said(output, _last_line(told), process.returncode, over)


def _waited(process: subprocess.Popen[bytes], limits: Limits) -> tuple[bytes, str]:
    end_s = time.monotonic() + limits.patience_s
    while True:
        try:
            return process.communicate(timeout=_LOOK_EVERY_S)[0], ""
        except subprocess.TimeoutExpired:
            if time.monotonic() > end_s:
                return b"", "time"
            if _resident_bytes(process.pid) > limits.memory_bytes:
                return b"", "memory"


def _resident_bytes(pid: int) -> int:
    total = 0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for one in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                total += one.memory_info().rss
    return total


def _ended(process: subprocess.Popen[bytes]) -> None:
    """Its whole group, which is its own."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _last_line(told: IO[bytes]) -> str:
    size = told.seek(0, os.SEEK_END)
    told.seek(max(0, size - _TAIL_BYTES))
    lines = told.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
