"""libkineto's daemon socket: processes with ``KINETO_USE_DAEMON`` ask it every few seconds whether to profile.

Datagrams on a Unix socket, as dynolog's ``ipcfabric`` has them: a head (size, type of 32 bytes) and a payload. ``ctxt``
registers a process and wants a count back; ``req`` (type, number of ids, job, ids of the process and those above it)
wants a configuration, or nothing. The client waits for an answer for 50 ms, so a thread of its own gives it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from meshscope.errors import LaunchError

POLL_NS = 5_000_000_000
"""How often a process asks, unless its own KINETO_CONFIG says otherwise."""

_NAME = "dynolog"
_HEAD = struct.Struct("<Q32s")
_REQUEST = struct.Struct("<iiq")
_COUNT = struct.Struct("<i")
_ACTIVITIES = 2
_LARGEST = 65_536
_LOOK_EVERY_S = 0.1
_MOST_IDS = 1024


def check(folder: str) -> None:
    """Raises LaunchError where somebody else answers there already."""
    KinetoSocket(folder).close()


@dataclass
class _Seen:
    last_ns: int
    interval_ns: int = POLL_NS


@dataclass
class KinetoSocket:
    """Answers until it is closed. ``folder`` is ``KINETO_IPC_SOCKET_DIR`` of the processes, "" for the usual place.

    Raises LaunchError where somebody else answers there already.
    """

    folder: str = ""
    _seen: dict[int, _Seen] = field(default_factory=dict)
    _orders: dict[int, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.bind(self._address)
        except OSError as error:
            self._socket.close()
            raise _taken(error, self.folder) from error
        self._socket.settimeout(_LOOK_EVERY_S)
        self._thread = threading.Thread(target=self._serve, daemon=True, name="kineto socket")
        self._thread.start()

    @property
    def _address(self) -> str | bytes:
        # The clients count the terminating NUL in.
        return str(Path(self.folder) / _NAME) if self.folder else b"\0" + _NAME.encode() + b"\0"

    def asked_ns(self, pid: int) -> int | None:
        """When a process last asked, on the monotonic clock; None while it has not."""
        seen = self._seen.get(pid)
        return None if seen is None else seen.last_ns

    def interval_ns(self, pid: int) -> int:
        """How long it lets pass from one question to the next."""
        seen = self._seen.get(pid)
        return POLL_NS if seen is None else seen.interval_ns

    def order(self, pid: int, configuration: str) -> None:
        """What the process gets when it asks next."""
        with self._lock:
            self._orders[pid] = configuration

    def withdraw(self, pid: int) -> bool:
        """Take an order back; False where it has been fetched."""
        with self._lock:
            return self._orders.pop(pid, None) is not None

    def is_fetched(self, pid: int) -> bool:
        with self._lock:
            return pid not in self._orders

    def close(self) -> None:
        """The processes ask on, and hear nothing: that is how they began."""
        self._is_over.set()
        self._thread.join()
        self._socket.close()
        if self.folder:
            with contextlib.suppress(OSError):
                os.unlink(str(self._address))

    def _serve(self) -> None:
        while not self._is_over.is_set():
            try:
                message, sender = self._socket.recvfrom(_LARGEST)
            except TimeoutError:
                continue
            answer = self._answered(message)
            if answer is not None and sender:
                # Whoever asked may be gone, or its socket full: then it asks again.
                with contextlib.suppress(OSError):
                    self._socket.sendto(answer, sender)

    def _answered(self, message: bytes) -> bytes | None:
        if len(message) < _HEAD.size:
            return None
        size, name = _HEAD.unpack_from(message)
        kind, payload = name.rstrip(b"\0"), message[_HEAD.size : _HEAD.size + size]
        if kind == b"ctxt":
            return packed(b"ctxt", _COUNT.pack(len(self._seen) + 1))
        if kind == b"req" and len(payload) >= _REQUEST.size:
            return packed(b"req", self._configuration(payload))
        return None

    def _configuration(self, payload: bytes) -> bytes:
        what, count, _ = _REQUEST.unpack_from(payload)
        room = (len(payload) - _REQUEST.size) // 4
        ids = struct.unpack_from(f"<{min(max(count, 0), room, _MOST_IDS)}i", payload, _REQUEST.size)
        if not ids:
            return b""
        pid = ids[0]  # The others are those above it.
        self._note(pid)
        with self._lock:
            found = self._orders.pop(pid, "") if what & _ACTIVITIES else ""
        return found.encode()

    def _note(self, pid: int) -> None:
        now_ns = time.monotonic_ns()
        seen = self._seen.get(pid)
        if seen is None:
            self._seen[pid] = _Seen(now_ns)
        else:
            # A process that is being profiled asks late; one that asks twice at once says nothing of its interval.
            gap_ns = now_ns - seen.last_ns
            interval_ns = gap_ns if POLL_NS // 20 < gap_ns < POLL_NS else POLL_NS
            self._seen[pid] = _Seen(now_ns, interval_ns)


def packed(kind: bytes, payload: bytes) -> bytes:
    return _HEAD.pack(len(payload), kind) + payload


def _taken(error: OSError, folder: str) -> LaunchError:
    where = f"{folder}/{_NAME}" if folder else f"@{_NAME}"
    if error.errno == errno.EADDRINUSE:
        return LaunchError(
            f"Somebody else answers at Kineto's socket {where}.",
            hint="End the dynolog daemon, or the other meshscope attach, and try again.",
        )
    return LaunchError(f"Kineto's socket {where} cannot be had: {error.strerror}.", hint="Run on Linux, as its user.")
