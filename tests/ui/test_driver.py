"""What a terminal says late is read away before the shell can."""

from __future__ import annotations

import os
import pty
import select
import threading
import time
import tty
from collections.abc import Iterator

import pytest
from textual.messages import TerminalSupportsSynchronizedOutput

from meshscope.ui.driver import PATIENCE_S, TerminalDriver

REPORT = b"\x1b[?2026;2$y"
MOUSE = b"\x1b[<35;20;10M"
ANSWER = b"\x1b[0n"


class Line(TerminalDriver):
    """A driver on a pseudo-terminal; ``asked`` is what it has written."""

    def __init__(self, fileno: int) -> None:
        self.fileno = fileno
        self.input_tty = True
        self.asked = ""
        self._begun_s = time.monotonic()

    def write(self, data: str) -> None:
        self.asked += data


@pytest.fixture
def line() -> Iterator[tuple[int, Line]]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    yield master, Line(slave)
    os.close(slave)
    os.close(master)


def later(master: int, seconds: float, *said: bytes) -> None:
    threading.Timer(seconds, lambda: [os.write(master, part) for part in said]).start()


def is_empty(driver: Line) -> bool:
    return not select.select([driver.fileno], [], [], 0.05)[0]


def test_answers_to_the_first_questions_are_waited_for_as_long_as_they_may_take(line: tuple[int, Line]) -> None:
    master, driver = line
    later(master, 0.3, REPORT)
    driver._read_away()
    assert is_empty(driver)
    assert driver.asked == ""
    assert time.monotonic() - driver._begun_s >= PATIENCE_S


def test_who_has_been_here_for_a_while_leaves_at_once(line: tuple[int, Line]) -> None:
    _, driver = line
    driver._begun_s -= 2 * PATIENCE_S
    begun = time.monotonic()
    driver._read_away()
    assert time.monotonic() - begun < PATIENCE_S / 2


def test_a_terminal_that_answers_is_asked_once_more_and_read_up_to_that(line: tuple[int, Line]) -> None:
    master, driver = line
    driver._begun_s -= 60
    driver._has_answered = True
    later(master, 0.3, MOUSE * 500, MOUSE + ANSWER[:2], ANSWER[2:])
    begun = time.monotonic()
    driver._read_away()
    assert driver.asked == "\x1b[5n"
    assert is_empty(driver)
    assert 0.3 <= time.monotonic() - begun < PATIENCE_S


def test_what_the_terminal_supports_tells_that_it_answers(
    line: tuple[int, Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, driver = line
    monkeypatch.setattr("textual.drivers.linux_driver.LinuxDriver.process_message", lambda self, message: None)
    assert not driver._has_answered
    driver.process_message(TerminalSupportsSynchronizedOutput())
    assert driver._has_answered


def test_a_terminal_that_has_gone_keeps_nobody(line: tuple[int, Line]) -> None:
    master, driver = line
    driver._has_answered = True
    os.dup2(os.open(os.devnull, os.O_RDWR), master)
    begun = time.monotonic()
    driver._read_away()
    assert time.monotonic() - begun < PATIENCE_S / 2
