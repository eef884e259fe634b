"""One window of one target, by whichever door it has: its trace goes into the recording, with what else the door gives.

A target that gives nothing is told of in the log; the others go on.
"""

from __future__ import annotations

import gzip
import importlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from meshscope.capture import stacks
from meshscope.capture.attach import kineto_traces, profiler_server, worker_server
from meshscope.capture.attach.kineto_socket import KinetoSocket
from meshscope.capture.attach.targets import Target
from meshscope.capture.calls import newest
from meshscope.errors import LaunchError
from meshscope.recording.entries import FlightWritten, Log, Phase, TraceWritten
from meshscope.recording.journal import Journal
from meshscope.recording.layout import FLIGHT, TRACES, XPLANES, write_whole

ARRIVING = "arriving"
BETWEEN = "attached"
"""The phase of a target that is not being traced."""

_WRITE_PATIENCE_S = 120.0
_LOOK_EVERY_S = 0.1
_LEVEL = 4


@dataclass(frozen=True)
class Order:
    """A window that begins at one time on all targets. ``is_over``: nobody waits for that of this one any more."""

    number: int
    start_unix_ns: int
    duration_ns: int
    is_over: Callable[[], bool]

    def until(self, unix_ns: int) -> None:
        while time.time_ns() < unix_ns and not self.is_over():
            time.sleep(_LOOK_EVERY_S)

    @property
    def end_unix_ns(self) -> int:
        return self.start_unix_ns + self.duration_ns


def take(target: Target, order: Order, recording: Path, journal: Journal, socket: KinetoSocket | None) -> None:
    """Trace one target; returns when its trace is announced, or when the log says why there is none."""
    way = {"kineto": _kineto, "profiler server": _profiler_server, "worker server": _worker_server}[target.door]
    try:
        way(target, order, recording, journal, socket)
    except LaunchError as error:
        tell(journal, target, "warning", f"{error.message} {error.hint}".strip())
    finally:
        phase(journal, target, BETWEEN)


def phase(journal: Journal, target: Target, name: str) -> None:
    journal.append(Phase(t_ns=journal.now_ns(), rank=target.rank, phase=name))


def tell(journal: Journal, target: Target, level: str, text: str) -> None:
    journal.append(Log(t_ns=journal.now_ns(), level=level, text=text, rank=target.rank))


def _kineto(target: Target, order: Order, recording: Path, journal: Journal, socket: KinetoSocket | None) -> None:
    if socket is None:
        raise LaunchError("Nobody answers at its Kineto socket.")
    folder = recording / ARRIVING
    folder.mkdir(exist_ok=True)
    log = folder.absolute() / f"window{order.number}.json"
    warmup_s = 0 if target.device_kind == "cpu" else kineto_traces.WARMUP_S
    socket.order(
        target.pid,
        kineto_traces.configuration(
            log, start_unix_ns=order.start_unix_ns, duration_ns=order.duration_ns, warmup_s=warmup_s
        ),
    )
    phase(journal, target, "warming profiler")
    order.until(order.start_unix_ns)
    if socket.withdraw(target.pid):
        raise LaunchError("It did not ask Kineto's socket in time: this window is without it.")
    phase(journal, target, "profiling")
    order.until(order.end_unix_ns)
    phase(journal, target, "stopping profiler")
    file = kineto_traces.written(log, target.pid)
    deadline_s = time.monotonic() + _WRITE_PATIENCE_S
    while not kineto_traces.is_whole(file):
        if order.is_over():
            raise LaunchError("Its trace had not come when it was left, or when it ended.")
        if time.monotonic() > deadline_s:
            raise LaunchError(
                f"It wrote no trace within {_WRITE_PATIENCE_S:.0f} s after the window.",
                hint="What it says about that is in its own output, on lines with “kineto” or “ActivityProfiler”.",
            )
        time.sleep(_LOOK_EVERY_S)
    _announce_kineto(file.read_bytes(), target, order, recording, journal)
    file.unlink()


def _profiler_server(target: Target, order: Order, recording: Path, journal: Journal, _: KinetoSocket | None) -> None:
    order.until(order.start_unix_ns)
    phase(journal, target, "profiling")
    session = f"window{order.number}"
    path = profiler_server.trace(
        target.address,
        duration_ns=order.duration_ns,
        root=(recording / XPLANES).absolute(),
        session=session,
        host=target.address.rpartition(":")[0].strip("[]"),
    )
    _announce(path.relative_to((recording / XPLANES).absolute()), "xplane", target, order, recording, journal)


def _worker_server(target: Target, order: Order, recording: Path, journal: Journal, _: KinetoSocket | None) -> None:
    order.until(order.start_unix_ns)
    take_stock(target, recording, journal, name=f"window{order.number}")
    phase(journal, target, "profiling")
    _announce_kineto(worker_server.trace(target.address, order.duration_ns), target, order, recording, journal)


def take_stock(target: Target, recording: Path, journal: Journal, *, name: str) -> None:
    """Where the threads of a rank are, and the collectives that it has called; a worker server tells."""
    text = worker_server.stacks(target.address)
    stacks.keep(text, recording, journal, rank=target.rank, name=name)
    content = worker_server.flight(target.address)
    try:
        found = json.loads(content)
    except ValueError:
        return
    if not isinstance(found, dict) or not found.get("entries"):
        return
    path = f"{FLIGHT}/flight_record_{name}_rank{target.rank}.json"
    write_whole(recording / path, content)
    journal.append(FlightWritten(t_ns=journal.now_ns(), rank=target.rank, path=path, newest=newest(found)))


def _announce_kineto(content: bytes, target: Target, order: Order, recording: Path, journal: Journal) -> None:
    name = f"rank{target.rank}-window{order.number}.pt.trace.json.gz"
    write_whole(recording / TRACES / name, _packed(content))
    _announce(Path(name), "kineto", target, order, recording, journal)


def _announce(path: Path, kind: str, target: Target, order: Order, recording: Path, journal: Journal) -> None:
    folder = XPLANES if kind == "xplane" else TRACES
    journal.append(
        TraceWritten(
            t_ns=journal.now_ns(),
            rank=target.rank,
            path=f"{folder}/{path.as_posix()}",
            format=kind,
            first_step=0,
            end_step=0,
            size_bytes=(recording / folder / path).stat().st_size,
            stop_ns=max(0, time.time_ns() - order.end_unix_ns),
        )
    )


def _packed(content: bytes) -> bytes:
    try:
        return bytes(importlib.import_module("isal.igzip").compress(content, 2))
    except ImportError:
        return gzip.compress(content, _LEVEL)
