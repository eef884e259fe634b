"""A wire between two network namespaces, as a process: it carries every packet after a while, until it is cut.

``python wire.py PID_A PID_B DELAY_MS CUT``: in the namespace of either process there is a device ``wire0`` then, with
the addresses 10.77.0.1 and 10.77.0.2. From the moment that the file CUT exists, packets vanish, and nobody is told.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time
from pathlib import Path

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MTU = 9000


def end_in(pid: int, own: str, peer: str) -> int:
    """A device in the namespace of a process, and the file that its packets pass through."""
    space = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(space, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(space)
    wire = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(wire, TUNSETIFF, struct.pack("16sH22x", b"wire0", IFF_TUN | IFF_NO_PI))
    for line in (
        f"addr add {own} peer {peer} dev wire0",
        f"link set wire0 mtu {MTU} txqueuelen 10000 up",
        "link set lo up",
    ):
        subprocess.run(["ip", *line.split()], check=True)
    return wire


def carry(ends: tuple[int, int], delay_s: float, cut: Path) -> None:
    under_way: list[tuple[float, int, int, bytes]] = []
    number = 0
    while True:
        wait_s = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 0.2
        for end in select.select(ends, [], [], min(wait_s, 0.2))[0]:
            packet = os.read(end, 65_536)
            number += 1
            heapq.heappush(under_way, (time.monotonic() + delay_s, number, ends[end == ends[0]], packet))
        is_cut = cut.exists()
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, end, packet = heapq.heappop(under_way)
            if not is_cut:
                os.write(end, packet)


if __name__ == "__main__":
    first, second = (
        end_in(int(sys.argv[1]), "10.77.0.1", "10.77.0.2"),
        end_in(int(sys.argv[2]), "10.77.0.2", "10.77.0.1"),
    )
    print("up", flush=True)
    carry((first, second), float(sys.argv[3]) / 1000, Path(sys.argv[4]))
