"""In a real terminal: however a screen is left, the shell finds its terminal as it was and nothing typed into it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import made
import psutil
import pytest
import tmux
from tmux import MESHSCOPE, Tmux

pytestmark = pytest.mark.skipif(not tmux.is_here(), reason="tmux is not installed")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    found = Tmux(tmp_path_factory.mktemp("tmux"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "run"
    made.write(folder)
    return folder


def assert_as_it_was(shell: Tmux) -> None:
    """The line discipline, the modes, and an empty line of input."""
    assert (shell.place / "after").read_text() == (shell.place / "before").read_text()
    modes = shell.modes()
    assert modes.pop("cursor_flag") == "1"
    assert set(modes.values()) == {"0"}, modes
    assert shell.stray() == ""
    assert not shell.is_paste_bracketed()


def watched(shell: Tmux, recording: Path) -> None:
    shell.start([*MESHSCOPE, "watch", str(recording)])
    shell.wait_for("ddp         450±2")  # samples per second: all is read and answered


def test_what_is_looked_at_is_there(shell: Tmux) -> None:
    """The looks themselves see what a careless program leaves behind."""
    for mode, told in (("?1049", "alternate_on"), ("?1003", "mouse_any_flag")):
        shell.shell(f"printf '\\033[{mode}h'")
        shell.wait_until(lambda told=told: shell.modes()[told] == "1", told)  # type: ignore[misc]
        shell.shell(f"printf '\\033[{mode}l'")
        shell.wait_until(lambda told=told: shell.modes()[told] == "0", told)  # type: ignore[misc]
    shell.shell("printf '\\033[c'; sleep 0.2")  # what the terminal answers is typed into the shell
    time.sleep(0.5)
    assert shell.stray() != ""
    shell.shell("printf '\\033[?2004h'")
    assert shell.is_paste_bracketed()
    shell.shell("printf '\\033[?2004l'")


def test_a_key_ends_the_screen(shell: Tmux, recording: Path) -> None:
    watched(shell, recording)
    assert shell.modes()["alternate_on"] == "1"
    assert shell.modes()["mouse_any_flag"] == "1"
    shell.resize(10, 3)
    shell.resize(100, 30)
    shell.wait_for("collectives by kind")
    shell.type("q")
    assert shell.end() == 0, shell.screen()
    assert f"Recorded in {recording}" in shell.screen().replace("\n", "")
    assert_as_it_was(shell)


def test_a_bug_in_drawing_ends_the_screen(shell: Tmux, recording: Path) -> None:
    shell.start([sys.executable, str(tmux.CRASHING), "watch", str(recording)])
    assert shell.end() == 1
    assert "this is a bug" in shell.screen()
    assert_as_it_was(shell)


@pytest.mark.slow
def test_questions_that_are_still_computed_keep_nobody(shell: Tmux, recording: Path) -> None:
    """Threads in compiled code aborted about every fifth interpreter that ended beside them."""
    for _ in range(10):
        shell.start([sys.executable, str(tmux.BUSY), "watch", str(recording)])
        shell.wait_for("Reading…")
        time.sleep(1.5)
        shell.type("q")
        assert shell.end() == 0, shell.screen()
    assert_as_it_was(shell)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_screen(shell: Tmux, recording: Path, number: signal.Signals) -> None:
    watched(shell, recording)
    shell.program.send_signal(number)
    assert shell.end() == 128 + number
    assert "Traceback" not in shell.screen()
    assert_as_it_was(shell)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_program_that_cannot_tidy_up_is_tidied_up_after(shell: Tmux, recording: Path, number: signal.Signals) -> None:
    watched(shell, recording)
    shell.program.send_signal(number)
    shell.wait_until((shell.place / "over").exists, "the end")  # its status is written to the alternate screen
    shell.wait_for("meshscope was killed; the terminal is as it was.")
    shell.shell("stty -a > after; touch looked")
    shell.wait_until((shell.place / "looked").exists, "a look at the terminal")
    (shell.place / "looked").unlink()
    assert_as_it_was(shell)


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["C-c", "C-q"])
def test_a_control_key_ends_the_screen(shell: Tmux, recording: Path, keys: str) -> None:
    watched(shell, recording)
    shell.type(keys)
    assert shell.end() == 0
    assert_as_it_was(shell)


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["q", "C-c", "Escape"])
def test_the_start_screen_leaves_no_trace(shell: Tmux, keys: str) -> None:
    shell.start(list(MESHSCOPE))
    shell.wait_for("[ start ]")
    shell.type(keys)
    assert shell.end() == 0
    assert "[ start ]" not in shell.screen()
    assert_as_it_was(shell)


@pytest.mark.slow
def test_a_quick_key_that_comes_before_the_screen_ends_it_too(shell: Tmux, recording: Path) -> None:
    shell.start([*MESHSCOPE, "watch", str(recording)])
    shell.wait_until(lambda: shell.modes()["alternate_on"] == "1", "the screen")
    shell.type("q")
    assert shell.end() == 0
    assert_as_it_was(shell)


@pytest.mark.slow
def test_a_dialog_and_the_timeline_are_left_as_any_screen(shell: Tmux, recording: Path) -> None:
    watched(shell, recording)
    shell.type("?")
    shell.wait_for("choose a strategy")
    shell.type("Escape")
    shell.wait_until(lambda: "choose a strategy" not in shell.screen(), "the end of the help")
    shell.type("t")
    shell.wait_for("a column")
    shell.program.terminate()
    assert shell.end() == 128 + signal.SIGTERM
    assert_as_it_was(shell)


SIZES = [(10, 3), (300, 90), (40, 10), (1, 1), (80, 24), (15, 60), (200, 4)]


@pytest.mark.slow
def test_every_size_is_drawn_while_it_plays(shell: Tmux, recording: Path) -> None:
    shell.start([*MESHSCOPE, "replay", str(recording), "--speed", "8", "--fps", "20"])
    shell.wait_for("collectives by kind")
    for _ in range(3):
        for width, height in SIZES:
            shell.resize(width, height)
            time.sleep(0.06)
    for width, height in SIZES:
        shell.resize(width, height)
        shell.wait_until(lambda: shell.screen().strip() != "", f"anything at {width} × {height}")
    shell.resize(300, 90)
    shell.wait_for("collectives by kind")
    shell.wait_until(lambda: len(shell.screen().rstrip().splitlines()) == 90, "the keys on the last line")
    shell.resize(100, 30)
    shell.type("q")
    assert shell.end() == 0
    assert_as_it_was(shell)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of six ranks that take a while to read: the file of one, under six names."""
    folder = tmp_path_factory.mktemp("traces")
    event = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 5, "args": {"stream": 7}}
    line = json.dumps(event)
    first = folder / "rank0.pt.trace.json"
    with first.open("w") as file:
        file.write('{"traceEvents": [')
        for _ in range(60):
            file.write(f"{line}," * 10_000)
        file.write(line + "]}")
    for rank in range(1, 6):
        os.link(first, folder / f"rank{rank}.pt.trace.json")
    return folder


def _interrupt(shell: Tmux) -> None:
    shell.type("C-c")


def _leave(shell: Tmux) -> None:
    shell.type("q")


def _terminate(shell: Tmux) -> None:
    shell.program.terminate()


@pytest.mark.slow
@pytest.mark.parametrize(("end", "code"), [(_leave, 0), (_interrupt, 130), (_terminate, 128 + signal.SIGTERM)])
def test_leaving_while_traces_are_read_ends_the_reading(
    shell: Tmux, traces: Path, end: Callable[[Tmux], None], code: int
) -> None:
    shell.start([*MESHSCOPE, "open", str(traces)], environ="MESHSCOPE_CACHE=off")
    shell.wait_for("reading")
    program = shell.program
    shell.wait_until(lambda: len(program.children(recursive=True)) > 0, "a process that reads")
    readers = program.children(recursive=True)
    end(shell)
    assert shell.end() == code
    assert_as_it_was(shell)
    assert psutil.wait_procs(readers, timeout=10)[1] == []


@pytest.mark.slow
def test_a_pane_that_is_closed_ends_the_program(tmp_path: Path, recording: Path) -> None:
    shell = Tmux(tmp_path)
    try:
        watched(shell, recording)
        program = shell.program
    finally:
        shell.close()
    assert psutil.wait_procs([program], timeout=20)[1] == []
