"""What a screen costs, as a table: ``python tests/benchmarks/screen.py``, run by hand; it asserts nothing.

Everything goes through a pseudo-terminal of 220 × 60. A run is made up while it is watched at ten frames a second:
four ranks with ten steps a second and sensors twice a second, the first two of its strategies already over. Shares and
the first paint are CPU time of the process, all of its threads; a key is
timed from its writing to the first byte that answers it, with the CPU time of it beside that, for busy machines.
"""

from __future__ import annotations

import os
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ui" / "support"))

import made
from terminal import Terminal

from meshscope.recording.entries import Sampled, StepDone
from meshscope.recording.journal import Journal

SIZE = (220, 60)
SECONDS = 20.0
KEYS = 40


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    found: float
    most: float
    unit: str
    beside: str = ""

    def __str__(self) -> str:
        verdict = "" if self.found <= self.most else "missed"
        return f"{self.what:<28}{self.found:8.2f} {self.unit:<11}≤ {self.most:<6g} {verdict:<8}{self.beside}"


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, by its CPU clock (clock_getcpuclockid(3)): exact, and of threads that ended too."""
    return time.clock_gettime((~pid << 3) | 2)


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


def painted(terminal: Terminal) -> tuple[float, float]:
    """CPU and wall seconds from the start of the program to its first drawing of the panels."""
    begun, seen = time.monotonic(), b""
    while b"strategies" not in seen:
        select.select([terminal.master], [], [], 5)
        seen += os.read(terminal.master, 1 << 16)
    return cpu_s(terminal.child.pid), time.monotonic() - begun


def helped() -> Row:
    took = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "meshscope", "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return Row("meshscope --help", min(took), 0.15, "s CPU", "the least of 5")


def first(folder: Path) -> Row:
    made.write(folder)
    found = []
    for _ in range(3):
        terminal = Terminal("-m", "meshscope", "watch", str(folder), program=(), size=SIZE)
        try:
            found.append(painted(terminal))
        finally:
            terminal.close()
    cpu, wall = min(found)
    return Row("first paint", cpu, 0.8, "s CPU", f"{wall:.2f} s by the wall, interpreter and imports included")


def live(folder: Path) -> list[Row]:
    t0 = time.time_ns() - 25 * made.S
    made.write(folder, started=2, endings={"fsdp": made.Ending("", 45)}, t0=t0, steps=2000, is_over=False)
    started = made.started_unix_ns(folder / "fsdp")
    (folder / "fsdp" / "t0").write_text(str(started))
    stop = threading.Event()
    writer = threading.Thread(target=write_live, args=(folder, stop))
    writer.start()
    terminal = Terminal(str(folder), "live", "10", size=SIZE)
    try:
        painted(terminal)
        drain(terminal, 3)
        before = cpu_s(terminal.child.pid)
        size = drain(terminal, SECONDS)
        used = cpu_s(terminal.child.pid) - before
    finally:
        stop.set()
        writer.join()
        terminal.close()
    return [
        Row("live, few changes, 10 Hz", used / SECONDS * 100, 10, "% of a core"),
        Row("  written to the terminal", size / SECONDS / 1000, 40, "kB/s"),
    ]


def keys(folder: Path) -> list[Row]:
    made.write(folder, made.SIX)
    terminal = Terminal(str(folder), "ok", "10", size=SIZE)
    pairs = (("strategy", "j", "k"), ("panel", "\t", "\x1b[Z"), ("maximise", "m", "m"), ("seek", "\x1b[D", "\x1b[C"))
    try:
        painted(terminal)
        terminal.type("\x1b[F")
        drain(terminal, 3)
        return [key_row(terminal, *pair) for pair in pairs]
    finally:
        terminal.close()


def key_row(terminal: Terminal, name: str, one: str, other: str) -> Row:
    took, before = [], cpu_s(terminal.child.pid)
    for index in range(KEYS):
        begun = time.perf_counter()
        terminal.type(other if index % 2 else one)
        select.select([terminal.master], [], [], 2)
        took.append((time.perf_counter() - begun) * 1000)
        drain(terminal, 0.15)
    each = (cpu_s(terminal.child.pid) - before) / KEYS * 1000
    beside = f"{sorted(took)[-2]:.1f} ms at most but one, {each:.1f} ms CPU each"
    return Row(f"key to paint, {name}", statistics.median(took), 15, "ms", beside)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        # As it is where it was installed: modules are compiled once, not at every start.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(place) / "compiled")
        print(f"load {os.getloadavg()[0]:.1f}; sizes {SIZE[0]} × {SIZE[1]}")
        print(helped())
        print(first(Path(place) / "first"))
        for row in (*live(Path(place) / "live"), *keys(Path(place) / "ended")):
            print(row)


if __name__ == "__main__":
    main()
