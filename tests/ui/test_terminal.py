"""On every way out the terminal is left as it was found."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import made
import pytest
from terminal import OFF, PATIENCE_S, Terminal


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made.write(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def terminal(run: Path, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    found = Terminal(str(run), getattr(request, "param", "ok"))
    yield found
    found.close()


def shown(terminal: Terminal) -> str:
    """What stays in the shell: the text after the alternate screen was left."""
    return terminal.output[terminal.output.rindex(OFF[0]) :]


def test_leaving_by_key_keeps_one_line_in_the_shell(terminal: Terminal, run: Path) -> None:
    terminal.wait_for("strategies")
    terminal.type("q")
    assert terminal.end() == 0
    terminal.assert_as_it_was()
    assert f"Recorded in {run}" in shown(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_restores_the_terminal(terminal: Terminal, number: signal.Signals) -> None:
    terminal.wait_for("strategies")
    terminal.child.send_signal(number)
    assert terminal.end() == 128 + number
    terminal.assert_as_it_was()
    assert "Traceback" not in terminal.output
    assert "Recorded in" in shown(terminal)


@pytest.mark.parametrize("terminal", ["bug"], indirect=True)
def test_a_crash_restores_the_terminal_and_looks_like_one(terminal: Terminal) -> None:
    terminal.wait_for("strategies")
    assert terminal.end() == 1
    terminal.assert_as_it_was()
    assert "this is a bug" in shown(terminal)


@pytest.mark.parametrize("terminal", ["refused"], indirect=True)
def test_what_a_person_can_mend_is_told_in_two_lines_without_a_traceback(terminal: Terminal) -> None:
    terminal.wait_for("strategies")
    assert terminal.end() == 1
    terminal.assert_as_it_was()
    assert "The folder is gone.\r\nMount it again." in shown(terminal)
    assert "Traceback" not in terminal.output


def test_a_terminal_that_goes_away_ends_the_screen(terminal: Terminal) -> None:
    terminal.wait_for("strategies")
    os.close(terminal.master)
    terminal.master = -1
    # 120 is Python's own: what was left to write has nowhere to go.
    assert terminal.child.wait(PATIENCE_S) in (129, -signal.SIGHUP, 120)


@pytest.mark.parametrize("terminal", ["mouseless"], indirect=True)
def test_without_a_mouse_none_is_asked_for(terminal: Terminal) -> None:
    terminal.wait_for("strategies")
    terminal.type("q")
    assert terminal.end() == 0
    assert "\x1b[?1000h" not in terminal.output
    assert "\x1b[?1003h" not in terminal.output


def test_with_a_mouse_it_is_given_back(terminal: Terminal) -> None:
    terminal.wait_for("strategies")
    assert "\x1b[?1000h" in terminal.output
    terminal.type("q")
    assert terminal.end() == 0
    terminal.assert_as_it_was()
