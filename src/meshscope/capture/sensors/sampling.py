"""Reads every source at an even beat and writes what it finds to the journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from meshscope.capture.sensors import Readings, Source, amd, nvml, tpu
from meshscope.capture.sensors.host import Host
from meshscope.recording.entries import Sampled, SensorFailed
from meshscope.recording.journal import Journal

EVERY_S = 0.4
_PARTING_S = 5.0


class Sampling:
    """A thread: a driver that does not answer then holds up no one who watches the ranks."""

    def __init__(self, recording: Path, t0_unix_ns: int, pids: Callable[[], Mapping[int, int]]) -> None:
        self._journal = Journal(recording, "sensors", t0_unix_ns=t0_unix_ns)
        self._pids = pids
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="sensors")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Waits for the beat under way, and no longer than a driver deserves."""
        self._is_over.set()
        self._thread.join(_PARTING_S)

    def _run(self) -> None:
        accelerators = (nvml.opened(self._pids), amd.opened(), tpu.opened())
        sources: list[Source] = [Host(self._pids), *(one for one in accelerators if one is not None)]
        due_s = time.monotonic() + EVERY_S / 2
        while not self._is_over.wait(max(0.0, due_s - time.monotonic())):
            beat(sources, self._journal)
            # The next beat is due from the last one's due time; one that was missed is not made up for.
            due_s = max(due_s + EVERY_S, time.monotonic())
        for source in sources:
            source.close()


def beat(sources: list[Source], journal: Journal) -> None:
    """One reading of all sources, as journal entries."""
    readings = Readings()
    for source in sources:
        source.read(readings)
    now_ns = journal.now_ns()
    for device, name, why in readings.failed:
        journal.append(SensorFailed(t_ns=now_ns, device=device, field=name, why=why))
    for device, values in readings.values.items():
        journal.append(Sampled(t_ns=now_ns, device=device, values=values))
