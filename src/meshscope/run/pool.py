"""Processes that read traces: started when there is work, each busy with one file, ended all at once."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from meshscope import config
from meshscope.readers import worker
from meshscope.readers.packing import Damaged, unpack
from meshscope.readers.worker import LONGEST_MESSAGE_BYTES, Asked, Told
from meshscope.spans import Window

_ENDED_PATIENCE_S = 2.0


@dataclass(frozen=True)
class Finished:
    """What came of one file, or of its first ``prefix_bytes``; without windows ``why`` and ``hint`` tell the reason."""

    path: Path
    prefix_bytes: int
    windows: tuple[Window, ...] | None
    events: int = 0
    why: str = ""
    hint: str = ""
    unkept: str = ""


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    line: socket.socket
    complaints: IO[bytes]
    path: Path | None = None
    asked: Asked | None = None
    told: Told = field(default_factory=Told)


class Pool:
    """At most ``size`` processes. They are in a session of their own, so that Ctrl-C reaches this process alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    @property
    def has_room(self) -> bool:
        """Whether a further file can be handed out."""
        return len(self._busy) < self._size

    @property
    def reading(self) -> tuple[tuple[Path, Told], ...]:
        """How far every file (not its beginning) is that is not finished."""
        return tuple(
            (one.path, one.told)
            for one in self._busy
            if one.path is not None and one.asked is not None and not one.asked.prefix_bytes
        )

    @property
    def told(self) -> tuple[Told, ...]:
        """What each busy process said last, of a file or of its beginning."""
        return tuple(one.told for one in self._busy)

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(one.process.pid for one in self._workers)

    @property
    def _busy(self) -> list[_Worker]:
        return [one for one in self._workers if one.asked is not None]

    def hand_out(self, path: Path, asked: Asked) -> None:
        """Have a process read a file; there must be room. Raises OSError when none can be started."""
        one = next((one for one in self._workers if one.asked is None), None) or self._start()
        one.path, one.asked, one.told = path, asked, Told()
        # Where it has died meanwhile, its line tells so when it is waited for.
        with suppress(OSError):
            one.line.send(msgspec.json.encode(asked))

    def wait(self, patience_s: float) -> list[Finished]:
        """What was finished within ``patience_s``; returns with the first."""
        finished: list[Finished] = []
        for key, _ in self._selector.select(patience_s):
            done = self._hear(key.data)
            if done is not None:
                finished.append(done)
        return finished

    def kill(self) -> None:
        """End every process now; they are cleared away by ``close``. May be called by any thread."""
        for one in tuple(self._workers):
            one.process.kill()

    def close(self) -> bool:
        """Kill every process; whether any was busy."""
        was_busy = bool(self._busy)
        self.kill()
        for one in list(self._workers):
            self._bury(one)
        self._selector.close()
        return was_busy

    def _start(self) -> _Worker:
        settings = os.fdopen(os.memfd_create("meshscope-settings"), "w+b")
        settings.write(msgspec.json.encode(config.current()))
        settings.seek(0)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        complaints: IO[bytes] = os.fdopen(os.memfd_create("meshscope-complaints"), "w+b")
        with theirs, settings:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", worker.__name__, str(theirs.fileno()), str(settings.fileno())],
                # Where the package stands is where this one was found: the working folder may hold anything.
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                pass_fds=(theirs.fileno(), settings.fileno()),
                start_new_session=True,
            )
        one = _Worker(process, ours, complaints)
        self._workers.append(one)
        self._selector.register(ours, selectors.EVENT_READ, one)
        return one

    def _hear(self, one: _Worker) -> Finished | None:
        """Take in one message."""
        try:
            content, descriptors, _, _ = socket.recv_fds(one.line, LONGEST_MESSAGE_BYTES, 1)
        except OSError:
            content, descriptors = b"", []
        if not content:
            return self._lost(one)
        one.told = msgspec.json.decode(content, type=Told)
        if not one.told.is_done:
            return None
        path, asked, told = one.path, one.asked, one.told
        one.asked = None
        if path is None or asked is None:
            return None
        windows, why = _handed_over(path, told, descriptors)
        return Finished(path, asked.prefix_bytes, windows, told.events, why, told.hint, told.unkept)

    def _lost(self, one: _Worker) -> Finished | None:
        """A process has ended by itself: its file is refused, the others go on."""
        path, asked = one.path, one.asked
        with suppress(subprocess.TimeoutExpired):
            one.process.wait(_ENDED_PATIENCE_S)
        how, last = _how(one.process.returncode), _last_line(one.complaints)
        self._bury(one)
        if path is None or asked is None:
            return None
        why = f"The process that read {path.name} {how}" + (f": {last}" if last else ".")
        hint = "If memory ran out, read fewer files at once: --jobs 1." if not last else "The other files are read."
        return Finished(path, asked.prefix_bytes, None, 0, why, hint)

    def _bury(self, one: _Worker) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(one.line)
        one.line.close()
        one.complaints.close()
        one.process.kill()
        one.process.wait()
        self._workers.remove(one)


def _handed_over(path: Path, told: Told, descriptors: list[int]) -> tuple[tuple[Window, ...] | None, str]:
    """The windows that came along, or why there are none."""
    if not descriptors:
        return None, told.why
    with os.fdopen(descriptors[0], "rb") as file:
        try:
            return unpack(file, told.key), ""
        except (Damaged, OSError) as error:
            return None, f"What was read of {path.name} did not arrive whole ({error})."


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"was killed ({signal.Signals(-code).name})"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with {code}"


def _last_line(complaints: IO[bytes]) -> str:
    """What Python said last: the error's name and text."""
    size = complaints.seek(0, os.SEEK_END)
    complaints.seek(max(size - 4096, 0))
    lines = complaints.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""
