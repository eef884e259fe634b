"""From what a person names (process ids, HOST:PORT, all of them) to the processes that are attached to."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from meshscope.capture.attach import profiler_server, worker_server
from meshscope.capture.attach.candidates import Candidate
from meshscope.errors import InputError

DOORS = ("kineto", "profiler server", "worker server")
_LIST = "meshscope attach lists the processes that there are."
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
_SHOWN = 60


@dataclass(frozen=True)
class Target:
    """One process and the door by which it is attached to, one of DOORS.

    ``address`` is the HOST:PORT of its server, "" for Kineto's socket, which is in ``socket_dir``. ``pid`` is −1 where
    it is not known (on another host), ``began_s`` tells the process from a later one. ``rank`` is −1 where nothing
    tells it; ``job`` is equal for the ranks of one job.
    """

    door: str
    framework: str
    pid: int = -1
    rank: int = -1
    world: int = 0
    address: str = ""
    socket_dir: str = ""
    device_kind: str = "cpu"
    command: str = ""
    began_s: float = 0.0
    job: str = ""

    @property
    def words(self) -> str:
        where = self.address if self.pid < 0 else f"pid {self.pid}"
        return f"{where} ({self.command[:_SHOWN]})" if self.command else where


def targets(words: Sequence[str], known: Sequence[Candidate], *, is_all: bool) -> tuple[tuple[Target, ...], list[str]]:
    """What is attached to, and notes on what is not.

    Raises InputError for what is named and cannot be attached to, with the reason and what to do.
    """
    found = [target for word in words for target in _named(word, known)]
    notes: list[str] = []
    if is_all:
        found += [_by_number(one) for one in known if one.door]
        notes = [f"pid {one.pid} is left out: {one.refusal[0]}. {one.refusal[1]}" for one in known if not one.door]
    if not found:
        raise InputError("None of the processes here can be attached to.", hint=_remedy(known))
    return tuple(dict.fromkeys(found)), notes


def _remedy(known: Iterable[Candidate]) -> str:
    told = dict.fromkeys(one.refusal[1] for one in known)
    return next(iter(told), "Start a job with KINETO_USE_DAEMON=1 (torch) or jax.profiler.start_server(9999) (JAX).")


def _named(word: str, known: Sequence[Candidate]) -> list[Target]:
    if word.isdecimal():
        return _of_pid(int(word), known)
    host, colon, port = word.rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) < 65_536):
        raise InputError(f"{word} is neither a process id nor HOST:PORT.", hint=_LIST)
    return [_of_address(word, host, int(port), known)]


def _of_pid(pid: int, known: Sequence[Candidate]) -> list[Target]:
    ranks = [one for one in known if one.launcher == pid]
    one = next((one for one in known if one.pid == pid), None)
    if one is None and not ranks:
        raise InputError(
            f"Process {pid} has not loaded torch or JAX, has ended, or may not be looked into.",
            hint=f"{_LIST} Those of other users are not among them.",
        )
    chosen = ranks or [one for one in known if one.pid == pid]
    for each in chosen:
        why, hint = each.refusal
        if why:
            raise InputError(f"Process {each.pid} ({each.command[:_SHOWN]}) cannot be attached to: {why}.", hint=hint)
    return [_by_number(each) for each in chosen]


def _by_number(one: Candidate) -> Target:
    is_kineto = one.door == "kineto"
    return Target(
        door=one.door,
        framework="torch" if is_kineto else "jax",
        address="" if is_kineto else f"localhost:{one.ports[0]}",
        socket_dir=one.socket_dir if is_kineto else "",
        **_about(one, "torch" if is_kineto else "jax"),
    )


def _about(one: Candidate, framework: str) -> dict[str, Any]:
    above = one.launcher if one.launcher >= 0 else ""
    return {
        "pid": one.pid,
        "rank": one.rank,
        "world": one.world,
        "device_kind": one.device_kind,
        "command": one.command,
        "began_s": one.began_s,
        # A JAX process has devices of its own, whose number only its traces tell.
        "job": f"torch {above}".strip() if framework == "torch" else f"jax {one.pid}",
    }


def _of_address(address: str, host: str, port: int, known: Sequence[Candidate]) -> Target:
    is_here = host in (*_LOCAL, socket.gethostname())
    one = next((one for one in known if is_here and port in one.ports), None)
    is_worker = "torch" in one.frameworks if one is not None else worker_server.answers_http(address)
    if one is not None and "jax" in one.frameworks and is_worker:
        is_worker = worker_server.answers_http(address)
    framework = "torch" if is_worker else "jax"
    (worker_server if is_worker else profiler_server).check(address)
    about = _about(one, framework) if one is not None else {"job": "torch" if is_worker else f"jax {address}"}
    return Target(
        door="worker server" if is_worker else "profiler server", framework=framework, address=address, **about
    )
