"""The host's cores and memory, and those of each rank's process: there is always that much to tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import psutil

from meshscope.capture.sensors import Readings
from meshscope.capture.sensors.cgroup import memory_limit


class Host:
    """``pids`` gives rank → process id as far as known. ``cpu_cores`` is how many cores' worth a rank is using."""

    def __init__(self, pids: Callable[[], Mapping[int, int]]) -> None:
        self._pids = pids
        self._known: dict[int, psutil.Process] = {}
        psutil.cpu_percent(None)  # The first answer has nothing before it to compare with.

    def read(self, into: Readings) -> None:
        memory = psutil.virtual_memory()
        into.add("host", "utilization_frac", psutil.cpu_percent(None) / 100)
        into.add("host", "memory_used_bytes", memory.total - memory.available)
        into.add("host", "memory_total_bytes", memory.total)
        limited = memory_limit()
        if limited is not None:
            into.add("host", "cgroup_used_bytes", limited.used_bytes)
            into.add("host", "cgroup_limit_bytes", limited.limit_bytes)
        for rank, pid in self._pids().items():
            self._read_rank(f"rank {rank}", pid, into)

    def _read_rank(self, device: str, pid: int, into: Readings) -> None:
        try:
            if pid not in self._known:
                self._known[pid] = psutil.Process(pid)
                self._known[pid].cpu_percent(None)
                return
            process = self._known[pid]
            rss_bytes = process.memory_info().rss
            if not rss_bytes:
                return  # It is ending: its memory is gone before its entry is, and nothing was measured.
            into.add(device, "cpu_cores", process.cpu_percent(None) / 100)
            into.add(device, "rss_bytes", rss_bytes)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            return  # It has ended; the roster tells of that.
        except psutil.AccessDenied as error:
            into.fail(device, "rss_bytes", str(error))

    def close(self) -> None:
        self._known.clear()
