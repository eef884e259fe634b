"""Faults of a torch rank's process and of its connections: it ends, or what it sends passes slowly."""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from options import OptionError

if TYPE_CHECKING:
    import torch

EXIT_CODE = 70
"""EX_SOFTWARE of sysexits.h: nothing else that ends a rank uses it."""

_MAX_PACING_RATE = 47  # SO_MAX_PACING_RATE of asm-generic/socket.h, which Python's socket module does not name.
_BYTES_PER_MBIT = 125_000


def crash(step: int) -> NoReturn:
    """Ends the process as a library does that gives up: a line on stderr, no exception, no clean-up."""
    print(f"fatal: rank-crash was asked for at step {step}, exit code {EXIT_CODE}", file=sys.stderr, flush=True)
    os._exit(EXIT_CODE)


class SlowLink:
    """Lets the kernel pace what this process sends to its peers.

    It is a true limit of the connections, not a pause around the calls: the rank comes in time, and the transfer takes
    longer for all. TCP paces a socket by itself from Linux 4.13 on, without rights or a queueing discipline. The
    connection to torchrun's store is left alone. Reference: socket(7); tcp_internal_pacing in the kernel.
    """

    def __init__(self, mbit_per_s: float, device: torch.device) -> None:
        if device.type != "cpu" or not sys.platform.startswith("linux"):
            raise OptionError(
                "slow-link slows the TCP connections of gloo on Linux; GPUs talk over links of their own.",
                "Use --device cpu.",
            )
        self._bytes_per_s = round(mbit_per_s * _BYTES_PER_MBIT)
        self._store_port = int(os.environ.get("MASTER_PORT", "0"))
        self._seen: set[int] = set()

    def slow_down(self) -> None:
        """Every connection that is new: process groups make theirs when they are made, or at their first call."""
        for number in _descriptors():
            try:
                status = os.fstat(number)
                if stat.S_ISSOCK(status.st_mode) and status.st_ino not in self._seen:
                    self._seen.add(status.st_ino)
                    self._pace(number)
            except OSError:
                continue  # Closed meanwhile, or not connected: nothing passes there.

    def _pace(self, number: int) -> None:
        with socket.socket(fileno=os.dup(number)) as peer:
            is_tcp = peer.family in (socket.AF_INET, socket.AF_INET6) and peer.type == socket.SOCK_STREAM
            if is_tcp and peer.getpeername()[1] != self._store_port:
                peer.setsockopt(socket.SOL_SOCKET, _MAX_PACING_RATE, self._bytes_per_s)


def _descriptors() -> list[int]:
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
