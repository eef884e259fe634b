"""The main job from the command line, with real ranks: it ends well, and it survives what befalls it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.live, pytest.mark.timeout(600)]

MESHSCOPE = [sys.executable, "-m", "meshscope"]
LONG = ("run", "ddp", "--ranks", "2", "--steps", "100000", "--out", "r")


def _processes(folder: Path) -> list[psutil.Process]:
    """Everything alive that was started for a recording in ``folder``: supervisor, launcher, ranks."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(folder) in line and "meshscope.capture" in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def _ranks(folder: Path) -> list[psutil.Process]:
    return [process for process in _processes(folder) if "workers.start" in " ".join(process.cmdline())]


def _supervisor(folder: Path) -> psutil.Process:
    (found,) = (p for p in _processes(folder) if "capture.supervisor" in " ".join(p.cmdline()))
    return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder to run in; whatever a failed test left running for it is ended."""
    yield tmp_path
    for process in _processes(tmp_path):
        process.kill()


def _until(what: Callable[[], Any], patience_s: float) -> float:
    """Wait for something to become true; how long it took."""
    start_s = time.monotonic()
    while not what():
        assert time.monotonic() - start_s < patience_s, "waited in vain"
        time.sleep(0.1)
    return time.monotonic() - start_s


def _step(folder: Path) -> int:
    """The newest step that rank 0 has finished."""
    journal = folder / "r" / "ddp" / "journal" / "rank0.jsonl"
    steps = re.findall(r'"type":"step".*?"step":(\d+)', journal.read_text()) if journal.exists() else []
    return int(steps[-1]) if steps else -1


def _start(place: Path, *line: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MESHSCOPE, *line, "--headless"], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _analyzed(place: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*MESHSCOPE, "analyze", "r", "--json"], cwd=place, capture_output=True, text=True, timeout=60, check=True
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def _replayed(place: Path) -> str:
    line = [*MESHSCOPE, "replay", "r", "--headless"]
    return subprocess.run(line, cwd=place, capture_output=True, text=True, timeout=60, check=True).stdout


def test_four_strategies_are_recorded_and_every_number_adds_up(place: Path) -> None:
    line = ("run", "ddp", "fsdp", "pmap", "pjit", "--ranks", "4", "--model", "tiny", "--out", "r", "--headless")
    done = subprocess.run([*MESHSCOPE, *line], cwd=place, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    recordings = _analyzed(place)["recordings"]
    assert [r["strategy"] for r in recordings] == ["ddp", "fsdp", "pmap", "pjit"]
    for recording in recordings:
        assert [rank["rank"] for rank in recording["ranks"]] == [0, 1, 2, 3]
        for rank in recording["ranks"]:
            for found in (rank["breakdown"], rank["per_step"]):
                assert found["compute_ns"] > 0
                assert found["collective_ns"] > 0
                assert found["hidden_ns"] + found["exposed_ns"] == found["collective_ns"]
                assert found["busy_ns"] + found["idle_ns"] == found["span_ns"]
    assert all(rank["breakdown"]["hidden_ns"] > 0 for rank in recordings[0]["ranks"])
    assert not _processes(place)


def test_a_killed_rank_ends_the_run_and_is_named(place: Path) -> None:
    run = _start(place, *LONG)
    _until(lambda: _step(place) >= 5, 90)
    victim = next(p for p in _ranks(place) if p.environ().get("RANK") == "1")
    victim.kill()
    _until(lambda: run.poll() is not None, 10)
    assert run.returncode == 1
    _, said = run.communicate()
    assert "rank 1" in said
    assert "SIGKILL" in said
    assert not _processes(place)
    assert _analyzed(place)["recordings"][0]["steps"]["count"] >= 5
    assert "rank 1" in _replayed(place)


def test_a_killed_supervisor_takes_its_ranks_along_and_leaves_a_recording_that_opens(place: Path) -> None:
    run = _start(place, *LONG)
    _until(lambda: _step(place) >= 5, 90)
    _supervisor(place).kill()
    _until(lambda: not _processes(place), 10)
    _until(lambda: run.poll() is not None, 10)
    assert run.returncode == 1
    assert "supervisor" in run.communicate()[1]
    assert _analyzed(place)["recordings"][0]["steps"]["count"] >= 5
    assert "ddp" in _replayed(place)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_every_child(place: Path, number: signal.Signals) -> None:
    run = _start(place, *LONG)
    _until(lambda: _step(place) >= 3, 90)
    watcher = _start(place, "watch", "r")
    time.sleep(2)
    watcher.send_signal(number)
    _until(lambda: watcher.poll() is not None, 10)
    if number == signal.SIGINT:
        assert watcher.returncode == 130
        assert "goes on" in watcher.communicate()[1]
    _goes_on(place)  # leaving a watcher stops nothing
    run.send_signal(number)
    _until(lambda: run.poll() is not None, 20)
    assert run.returncode == 130
    assert not _processes(place)
    assert _analyzed(place)["recordings"][0]["steps"]["count"] >= 3


class Screen:
    """meshscope on a terminal of its own, as a person would have it."""

    def __init__(self, place: Path, *line: str) -> None:
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            os.chdir(place)
            environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
            os.execvpe(MESHSCOPE[0], [*MESHSCOPE, *line], environment)

    def drain(self) -> bool:
        """Read what was drawn, so that the program never waits for its terminal; false once it is gone."""
        import select

        try:
            while select.select([self._terminal], [], [], 0.05)[0]:
                if not os.read(self._terminal, 65536):
                    return False
        except OSError:
            return False
        return True

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def hang_up(self) -> None:
        os.close(self._terminal)

    def ended(self) -> int | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None


def _goes_on(place: Path) -> None:
    before = _step(place)
    _until(lambda: _step(place) > before + 2, 30)


def test_a_killed_screen_leaves_the_run_going_and_watch_rejoins(place: Path) -> None:
    screen = Screen(place, *LONG)
    _until(lambda: screen.drain() and _step(place) >= 3, 120)
    os.kill(screen.pid, signal.SIGKILL)
    os.waitpid(screen.pid, 0)
    screen.hang_up()
    _goes_on(place)
    again = Screen(place, "watch", "r")
    _until(lambda: again.drain() and _step(place) >= 8, 60)
    again.type("q")
    time.sleep(1)
    again.drain()
    again.type("s")  # stop the run
    _until(lambda: again.drain() is not None and not _processes(place), 30)
    _until(lambda: (again.drain(), again.ended())[1] is not None, 20)
    assert _analyzed(place)["recordings"][0]["steps"]["count"] >= 8


def test_a_closed_terminal_leaves_the_run_going(place: Path) -> None:
    screen = Screen(place, *LONG)
    _until(lambda: screen.drain() and _step(place) >= 3, 120)
    screen.hang_up()
    _until(lambda: screen.ended() is not None, 20)
    _goes_on(place)
    _supervisor(place).terminate()
    _until(lambda: not _processes(place), 20)
