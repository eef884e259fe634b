"""``open``, ``cache`` and reading with progress, as commands."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from meshscope.cli.progressing import line
from meshscope.run import SoFar

PATIENCE_S = 60.0
EVENT = '{"ph":"X","cat":"kernel","name":"gemm%d","pid":0,"tid":7,"ts":%d.5,"dur":3.25,"args":{"stream":7,"device":0}}'


def write(path: Path, kernels: int) -> Path:
    with path.open("w") as file:
        file.write('{"distributedInfo": {"rank": 0}, "baseTimeNanoseconds": 1790000000000000000, "traceEvents": [')
        file.write(",\n".join(EVENT % (n % 9, n * 4) for n in range(kernels)))
        file.write("]}")
    return path


def run(*line: str, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"MESHSCOPE_CACHE": str(cache) if cache else "off"}
    command = [sys.executable, "-m", "meshscope", *line]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environ)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Large enough for a process of its own, and for its reading to be interrupted."""
    return write(tmp_path_factory.mktemp("big") / "rank0.json", 500_000)


def test_without_a_terminal_open_prints_what_analyze_prints(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", 2000)
    opened, analyzed = run("open", str(path)), run("analyze", str(path))
    assert (opened.returncode, opened.stdout, opened.stderr) == (0, analyzed.stdout, analyzed.stderr)
    assert "2000 of device work" in opened.stdout
    assert run("open", str(path), "--headless").stdout == opened.stdout


@pytest.mark.parametrize(("what", "says"), [("nothere", "does not exist"), ("empty", "holds no trace file")])
def test_a_bad_path_is_one_line_and_what_to_do(tmp_path: Path, what: str, says: str) -> None:
    (tmp_path / "empty").mkdir()
    done = run("open", str(tmp_path / what))
    assert (done.returncode, done.stdout) == (1, "")
    first, second = done.stderr.splitlines()
    assert says in first
    assert second.startswith("  ")


def test_a_second_reading_comes_from_the_cache_and_is_the_same(big: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = run("analyze", "--json", str(big), cache=cache)
    assert json.loads(first.stdout)["recordings"][0]["ranks"][0]["events"]["read"] == 500_000
    (entry,) = (cache / "entries").iterdir()
    used_ns = entry.stat().st_mtime_ns
    second = run("analyze", "--json", str(big), cache=cache)
    assert second.stdout == first.stdout
    assert entry.stat().st_mtime_ns > used_ns
    assert run("analyze", "--json", str(big)).stdout == first.stdout


def test_cache_says_what_it_keeps_and_clears_it(big: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert run("cache", cache=cache).stdout.startswith(f"{cache}: 0 traces, 0 B of at most ")
    run("analyze", str(big), cache=cache)
    assert run("cache", cache=cache).stdout.startswith(f"{cache}: 1 trace, ")
    cleared = run("cache", "--clear", cache=cache)
    assert (cleared.returncode, list((cache / "entries").iterdir())) == (0, [])
    assert "cleared, 1 trace" in cleared.stdout
    assert "off" in run("cache").stdout


def test_a_cache_that_cannot_be_written_is_a_note_and_no_error(big: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    done = run("analyze", "--json", str(big), cache=tmp_path / "cache")
    assert done.returncode == 0
    assert json.loads(done.stdout)["recordings"]
    assert done.stderr.startswith("note: The cache ")
    assert len(done.stderr.splitlines()) == 1


# The terminal becomes the controlling one of the new session: Ctrl-C on it is a signal to all who belong to it, also
# where the tests run in the background, whose children begin with that signal ignored.
ON_ITS_TERMINAL = """
import fcntl, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
from meshscope.cli import main
main()
"""


class Typed:
    """A command on a pseudo-terminal that is its own."""

    def __init__(self, *line: str, cache: Path) -> None:
        self.master, slave = pty.openpty()
        self.output = ""

        self.child = subprocess.Popen(
            [sys.executable, "-c", ON_ITS_TERMINAL, *line],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=os.environ | {"TERM": "xterm-256color", "MESHSCOPE_CACHE": str(cache)},
            start_new_session=True,
        )
        os.close(slave)

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while text not in self.output:
            assert time.monotonic() < end, self.output[-2000:]
            assert self.child.poll() is None, self.output[-2000:]
            self.read(0.05)

    def read(self, seconds: float) -> None:
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.output += os.read(self.master, 65536).decode("utf-8", "replace")
            except OSError:
                time.sleep(seconds)

    def end(self) -> float:
        """Seconds until it has ended."""
        began = time.monotonic()
        while self.child.poll() is None:
            assert time.monotonic() - began < PATIENCE_S
            self.read(0.01)
        took_s = time.monotonic() - began
        self.read(0.1)
        os.close(self.master)
        return took_s

    @property
    def readers(self) -> list[psutil.Process]:
        return psutil.Process(self.child.pid).children(recursive=True)


def no_trust(cache: Path) -> bool:
    """Whether nothing is left that a later opening would take for a whole entry, or would have to clear away."""
    return not list(cache.rglob("*.columns")) and not list(cache.rglob("*.part"))


def gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=5)
    return bool(processes) and not alive


def test_ctrl_c_while_traces_are_read_ends_it_at_once(big: Path, tmp_path: Path) -> None:
    typed = Typed("analyze", str(big), cache=tmp_path / "cache")
    typed.wait_for("reading: ")
    readers = typed.readers
    os.write(typed.master, b"\x03")
    took_s = typed.end()
    assert typed.child.returncode == 130
    assert took_s < 2
    assert "Traceback" not in typed.output
    assert gone(readers)
    assert no_trust(tmp_path / "cache")


def test_a_command_that_is_killed_takes_its_readers_along(big: Path, tmp_path: Path) -> None:
    typed = Typed("analyze", str(big), cache=tmp_path / "cache")
    typed.wait_for("reading: ")
    readers = typed.readers
    typed.child.send_signal(signal.SIGKILL)
    typed.end()
    assert gone(readers)
    assert not list((tmp_path / "cache").rglob("*.columns"))


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("\x03", 130)], ids=["q", "ctrl-c"])
def test_leaving_the_screen_while_traces_are_read_ends_it_at_once(
    big: Path, tmp_path: Path, key: str, code: int
) -> None:
    typed = Typed("open", str(big), cache=tmp_path / "cache")
    typed.wait_for("reading, 0 of 1 file done")
    typed.wait_for(" events")
    readers = typed.readers
    os.write(typed.master, key.encode())
    took_s = typed.end()
    assert typed.child.returncode == code
    assert took_s < 5
    assert "Traceback" not in typed.output
    assert "\x1b[?1049l" in typed.output
    assert gone(readers)
    assert no_trust(tmp_path / "cache")


def test_a_signal_while_traces_are_read_restores_the_terminal_and_ends_the_readers(big: Path, tmp_path: Path) -> None:
    typed = Typed("open", str(big), cache=tmp_path / "cache")
    typed.wait_for("reading, 0 of 1 file done")
    typed.wait_for(" events")
    readers = typed.readers
    typed.child.send_signal(signal.SIGTERM)
    typed.end()
    assert typed.child.returncode == 128 + signal.SIGTERM
    assert "\x1b[?1049l" in typed.output
    assert gone(readers)


def test_a_bad_path_never_opens_the_screen(tmp_path: Path) -> None:
    typed = Typed("open", str(tmp_path / "nothere"), cache=tmp_path / "cache")
    typed.end()
    assert typed.child.returncode == 1
    assert "does not exist" in typed.output
    assert "\x1b[?1049h" not in typed.output


def test_the_progress_line_says_that_readers_are_compiled_and_fits_a_terminal() -> None:
    so_far = SoFar(3, 0, 1_230_000_000, 123_000_000, 0, 90 * 10**9, is_done=False)
    assert line(so_far) == "reading: 10.0 % of 1.23 GB, 0 of 3 files, 90 s left"
    told = line(replace(so_far, is_compiling=True))
    assert told == "reading: 10.0 % of 1.23 GB, compiling fast readers once; later openings skip it"
    assert len(told) < 80
