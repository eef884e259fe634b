"""What a live screen costs: run by hand, ``python tests/benchmarks/screen.py``; prints figures and asserts none.

A run is made up while it is watched on a pseudo-terminal: four ranks with ten steps a second and sensors twice a
second, at 220 × 60 and ten frames a second, with the first two of its strategies already over.
"""

from __future__ import annotations

import os
import select
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ui" / "support"))

import made
from terminal import Terminal

from meshscope.recording.entries import Sampled, StepDone
from meshscope.recording.journal import Journal

SIZE = (220, 60)
SECONDS = 20.0


def write_live(folder: Path, stop: threading.Event) -> None:
    """Append to the newest strategy's journals as four ranks and a supervisor do."""
    path = folder / "fsdp"
    t0 = int((path / "t0").read_text())
    ranks = [Journal(path, f"rank{rank}", t0_unix_ns=t0) for rank in range(made.RANKS)]
    sensors = Journal(path, "sensors", t0_unix_ns=t0)
    step = 45
    while not stop.wait(0.1):
        for rank, journal in enumerate(ranks):
            now = journal.now_ns()
            journal.append(
                StepDone(t_ns=now, rank=rank, step=step, start_ns=now - 100 * made.MS, end_ns=now, tokens=1024,
                         samples=8, loss=3.0, data_wait_ns=made.MS)
            )  # fmt: skip
        if step % 5 == 0:
            for name in ("host", *(f"rank {rank}" for rank in range(made.RANKS))):
                values = {"cpu_frac": 0.9 + 0.01 * (step % 7), "rss_bytes": 371e6 + step * 1e4}
                sensors.append(Sampled(t_ns=sensors.now_ns(), device=name, values=values))
        step += 1


def drain(terminal: Terminal, seconds: float) -> int:
    """Bytes that the screen writes in a while."""
    total, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal.master], [], [], min(left, 0.1))[0]:
            total += len(os.read(terminal.master, 1 << 16))
    return total


def live(folder: Path) -> None:
    t0 = time.time_ns() - 25 * made.S
    made.write(folder, started=2, endings={"fsdp": made.Ending("", 45)}, t0=t0, steps=2000, is_over=False)
    started = made.started_unix_ns(folder / "fsdp")
    (folder / "fsdp" / "t0").write_text(str(started))
    stop = threading.Event()
    writer = threading.Thread(target=write_live, args=(folder, stop))
    writer.start()
    begun = time.monotonic()
    terminal = Terminal(str(folder), "live", "10", size=SIZE)
    try:
        terminal.wait_for("strategies")
        print(f"first paint         {time.monotonic() - begun:6.2f} s  (interpreter, imports and all)")
        drain(terminal, 3)
        process = psutil.Process(terminal.child.pid)
        before = process.cpu_times()
        size = drain(terminal, SECONDS)
        after = process.cpu_times()
        used = after.user + after.system - before.user - before.system
        print(f"live, 10 Hz         {used / SECONDS * 100:6.1f} % of a core, {size / SECONDS / 1000:.1f} kB/s")
    finally:
        stop.set()
        writer.join()
        terminal.close()


def keys(folder: Path) -> None:
    made.write(folder, made.SIX)
    terminal = Terminal(str(folder), "ok", "10", size=SIZE)
    try:
        terminal.wait_for("strategies")
        terminal.type("\x1b[F")
        drain(terminal, 3)
        for name, one, other in (("strategy", "j", "k"), ("panel", "\t", "\x1b[Z"), ("maximise", "m", "m")):
            took = []
            for index in range(40):
                drain(terminal, 0.12)
                begun = time.perf_counter()
                terminal.type(other if index % 2 else one)
                select.select([terminal.master], [], [], 2)
                took.append((time.perf_counter() - begun) * 1000)
            quick = f"{statistics.median(took):6.1f} ms median, {sorted(took)[-2]:.1f} ms at most but one"
            print(f"key to paint        {quick}  ({name})")
    finally:
        terminal.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        live(Path(place) / "live")
        keys(Path(place) / "ended")


if __name__ == "__main__":
    main()
