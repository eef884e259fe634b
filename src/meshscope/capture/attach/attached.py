"""One job that is attached to, from the first look to the last entry of its recording; the job itself is left alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil

from meshscope.capture import machine, processes
from meshscope.capture.attach import doors
from meshscope.capture.attach.doors import Order
from meshscope.capture.attach.kineto_socket import KinetoSocket
from meshscope.capture.attach.kineto_traces import WARMUP_S
from meshscope.capture.attach.planning import Attach
from meshscope.capture.attach.targets import Target
from meshscope.capture.sensors.sampling import Sampling
from meshscope.experiment import Experiment
from meshscope.recording.control import Ask
from meshscope.recording.entries import Ended, Log, RankEnded, RankStarted
from meshscope.recording.journal import Journal
from meshscope.recording.layout import create
from meshscope.units import counted

DETACHED = "detached: the job goes on"
_MARGIN_NS = 2_500_000_000  # A process that was asked gets a thread and a file ready before its window begins.
_SILENT_S = 15.0
_LOOK_EVERY_S = 0.1


@dataclass
class Attached:
    """``sockets`` maps a folder of Kineto's socket ("" for the usual place) to what answers there."""

    recording: Path
    experiment: Experiment
    targets: tuple[Target, ...]
    asked: Attach
    sockets: Mapping[str, KinetoSocket]
    journal: Journal = field(init=False)
    windows: int = 0
    _sampling: Sampling = field(init=False)
    _alive: dict[int, psutil.Process] = field(default_factory=dict)
    _gone: set[int] = field(default_factory=set)
    _round: threading.Thread | None = None
    _due_s: float = 0.0
    _is_asked: bool = False
    _is_over: threading.Event = field(default_factory=threading.Event)

    def open(self) -> None:
        create(self.recording, self.experiment)
        self.journal = Journal(self.recording, "supervisor", t0_unix_ns=self.experiment.t0_unix_ns)
        for target in self.targets:
            process = processes.known(target.pid) if target.pid > 0 else None
            if process is not None:
                self._alive[target.rank] = process
            self.journal.append(
                RankStarted(
                    t_ns=self.journal.now_ns(),
                    rank=target.rank,
                    device=target.rank,
                    device_name=machine.cpu_name() if target.device_kind == "cpu" else target.device_kind.upper(),
                    device_kind=target.device_kind,
                    pid=target.pid,
                )
            )
            doors.phase(self.journal, target, doors.BETWEEN)
            doors.tell(self.journal, target, "info", f"attached to {target.words} by its {_door(target)}")
        self._sampling = Sampling(self.recording, self.experiment.t0_unix_ns, self._pids)
        self._sampling.start()

    def _pids(self) -> dict[int, int]:
        return {rank: process.pid for rank, process in self._alive.items() if rank not in self._gone}

    def look(self, asks: Iterable[Ask]) -> None:
        """Begin a window if one is due or was asked for; note who has ended."""
        self._is_asked |= any(ask.what == "profile" for ask in asks)
        self._note_ends()
        if self._is_busy or self.is_over:
            return
        is_due = time.monotonic() >= self._due_s and (self.asked.every_s > 0 or not self.windows)
        if self._is_asked or (is_due and not self._is_full):
            self._begin()

    def _begin(self) -> None:
        self._is_asked = False
        self.windows += 1
        self._due_s = time.monotonic() + self.asked.every_s
        living = [target for target in self.targets if target.rank not in self._gone]
        self._round = threading.Thread(target=self._take, args=(self.windows, living), daemon=True, name="window")
        self._round.start()

    def _take(self, number: int, living: list[Target]) -> None:
        ready = [target for target in living if self._asks(target)]
        if not ready:
            return
        start_unix_ns = self._start_unix_ns(ready)
        threads = [
            threading.Thread(
                target=doors.take,
                args=(
                    target,
                    Order(number, start_unix_ns, round(self.asked.window_s * 1e9), partial(self._is_left, target)),
                    self.recording,
                    self.journal,
                    self.sockets.get(target.socket_dir),
                ),
                daemon=True,
                name=f"window of rank {target.rank}",
            )
            for target in ready
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _is_left(self, target: Target) -> bool:
        """Whether nothing more is to be had of a target, or nobody wants it."""
        return self._is_over.is_set() or target.rank in self._gone

    def _asks(self, target: Target) -> bool:
        """Whether a target's door is open; that of a torch process shows when it asks Kineto's socket."""
        if target.door != "kineto":
            return True
        socket = self.sockets[target.socket_dir]
        deadline_s = time.monotonic() + _SILENT_S
        while socket.asked_ns(target.pid) is None:
            if self._is_left(target):
                return False
            if time.monotonic() > deadline_s:
                text = (
                    f"{target.words} has KINETO_USE_DAEMON and has not asked Kineto's socket for {_SILENT_S:.0f} s: "
                    "it is still importing torch, its torch has no Kineto, or it runs in a container of its own"
                )
                doors.tell(self.journal, target, "warning", text)
                return False
            time.sleep(_LOOK_EVERY_S)
        return True

    def _start_unix_ns(self, ready: list[Target]) -> int:
        """As soon as every target can know of it."""
        asking = [target for target in ready if target.door == "kineto"]
        if not asking:
            return time.time_ns()
        waits_ns = max(self.sockets[target.socket_dir].interval_ns(target.pid) for target in asking)
        warmup_s = 0 if all(target.device_kind == "cpu" for target in asking) else WARMUP_S
        return time.time_ns() + waits_ns + warmup_s * 1_000_000_000 + _MARGIN_NS

    def _note_ends(self) -> None:
        for target in self.targets:
            process = self._alive.get(target.rank)
            if target.rank in self._gone or process is None or processes.is_alive(process):
                continue
            self._gone.add(target.rank)
            why = "its process has ended; with which exit code is told to its parent alone"
            self.journal.append(RankEnded(t_ns=self.journal.now_ns(), rank=target.rank, exit_code=0, why=why))

    @property
    def _is_busy(self) -> bool:
        return self._round is not None and self._round.is_alive()

    @property
    def _is_full(self) -> bool:
        return bool(self.asked.most) and self.windows >= self.asked.most

    @property
    def is_over(self) -> bool:
        """Whether all processes have ended, or all windows that were asked for are taken."""
        if self._is_busy:
            return False
        return len(self._gone) == len(self.targets) or self._is_full

    def close(self, *, is_left: bool) -> Ended:
        """Leave the job alone. ``is_left``: somebody asked for that; else it is over by itself."""
        self._is_over.set()
        for target in self.targets:
            if target.door == "kineto":
                self.sockets[target.socket_dir].withdraw(target.pid)
        if self._round is not None:
            self._round.join(1.0)
        self._sampling.stop()
        self._tidy()
        ended = self._ended(is_left=is_left)
        self.journal.append(ended)
        self.journal.close()
        return ended

    def _ended(self, *, is_left: bool) -> Ended:
        is_gone = len(self._gone) == len(self.targets)
        text = "the job has ended" if is_gone else f"{DETACHED} ({counted(self.windows, 'window')} taken)"
        self.journal.append(Log(t_ns=self.journal.now_ns(), level="info", text=text))
        if not is_left and not any(True for _ in self._traces()):
            why = "no process gave a trace; the log says why"
            return Ended(t_ns=self.journal.now_ns(), outcome="failed", why=why)
        return Ended(t_ns=self.journal.now_ns(), outcome="done")

    def _traces(self) -> Iterable[Path]:
        yield from (self.recording / "traces").glob("rank*")
        yield from (self.recording / "plugins").rglob("*.xplane.pb")

    def _tidy(self) -> None:
        """The folder of traces on their way stays while one of them may still come."""
        folder = self.recording / doors.ARRIVING
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _door(target: Target) -> str:
    return {"kineto": "Kineto daemon socket"}.get(target.door, f"{target.door} at {target.address}")
