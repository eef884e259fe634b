"""Real runs for tests: started, waited for with a bound, and never left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from meshscope.capture import launch
from meshscope.capture.launch import Request
from meshscope.experiment import Plan
from meshscope.recording.entries import Ended, Entry, RankStarted
from meshscope.recording.journal import Tail

TOY = Path(__file__).parent / "toy"


@dataclass
class Live:
    """A run under way. Every wait has a bound."""

    folder: Path
    plan: Plan
    pid: int

    def entries(self, strategy: str = "", writer: str = "*") -> list[Entry]:
        """What stands in the journals of a strategy's recording ("" for the comparison's own), in time order."""
        paths = (self.folder / strategy / "journal").glob(f"{writer}.jsonl")
        return sorted((entry for path in paths for entry in Tail(path).read()), key=lambda entry: entry.t_ns)

    def until(self, holds: Callable[[], object], patience_s: float = 90) -> None:
        deadline = time.monotonic() + patience_s
        while not holds():
            assert time.monotonic() < deadline, f"not within {patience_s} s; {self.log()}"
            time.sleep(0.05)

    def wait(self, patience_s: float = 120) -> Ended:
        """Until the supervisor is gone; the plan's last entry."""
        self.until(lambda: not launch.is_running(self.pid), patience_s)
        last = [entry for entry in self.entries() if isinstance(entry, Ended)]
        assert len(last) == 1, self.log()
        return last[0]

    def exit_code(self) -> int | None:
        return launch._STARTED[self.pid].returncode

    def pids(self, strategy: str) -> dict[int, int]:
        return {e.rank: e.pid for e in self.entries(strategy) if isinstance(e, RankStarted)}

    def family(self) -> list[psutil.Process]:
        """Everything the supervisor has started and that lives now, itself included."""
        root = psutil.Process(self.pid)
        return [root, *root.children(recursive=True)]

    def log(self) -> str:
        return (self.folder / "logs" / "supervisor.txt").read_text()


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Callable[..., Live]]:
    """Starts a run of toy strategies (or of the folder given); whatever it still runs at the end is killed."""
    started: list[Live] = []

    def start(*strategies: str, **asked: object) -> Live:
        folder = tmp_path / f"run{len(started)}"
        request = Request(strategies=strategies, out=str(folder), **{"workloads": str(TOY)} | asked)
        plan = launch.plan(request)
        live = Live(folder, plan, launch.start(folder, plan))
        started.append(live)
        return live

    yield start
    for live in started:
        if launch.is_running(live.pid):
            for process in reversed(live.family()):
                process.send_signal(signal.SIGKILL)
        with_ids = [pid for run in live.plan.runs for pid in live.pids(run.folder).values()]
        for pid in with_ids:
            assert not _is_rank_of(pid, live.folder), f"rank {pid} outlived its test"


def _is_rank_of(pid: int, folder: Path) -> bool:
    time.sleep(0.05)
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and str(folder) in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(autouse=True)
def _source_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that tests start import this tree's meshscope."""
    monkeypatch.setenv("PYTHONPATH", f"{root / 'src'}:{os.environ.get('PYTHONPATH', '')}".rstrip(":"))
