"""Escape and a key within Textual's wait for sequences are two keys; what a terminal reports stays whole."""

from __future__ import annotations

import os
import pty
import threading
import time
import tty

import pytest
from textual import constants
from textual.events import Key
from textual.message import Message

from meshscope.ui.driver import TerminalDriver
from meshscope.ui.escaping import TwoKeys


def keys(sent: str) -> list[str]:
    parser = TwoKeys()
    found = [event.key for event in parser.feed(sent) if isinstance(event, Key)]
    time.sleep(constants.ESCAPE_DELAY + 0.01)
    return found + [event.key for event in parser.tick() if isinstance(event, Key)]


@pytest.mark.parametrize(
    ("sent", "pressed"),
    [
        ("\x1bj", ["escape", "j"]),
        ("\x1bjk", ["escape", "j", "k"]),
        ("\x1bT", ["escape", "T"]),
        ("\x1b5", ["escape", "5"]),
        ("\x1bf", ["escape", "f"]),
        ("\x1bP", ["escape", "P"]),
        ("\x1b?", ["escape", "question_mark"]),
        ("\x1b\r", ["escape", "enter"]),
        ("\x1b ", ["escape", "space"]),
        ("\x1b\x1b[A", ["escape", "up"]),
        ("\x1b[", ["escape", "left_square_bracket"]),
        ("\x1b]", ["escape", "right_square_bracket"]),
        ("\x1b[[", ["escape", "left_square_bracket", "left_square_bracket"]),
        ("\x1b]j", ["escape", "right_square_bracket", "j"]),
        ("\x1b", ["escape"]),
    ],
)
def test_escape_and_a_key_are_two_keys(sent: str, pressed: list[str]) -> None:
    assert keys(sent) == pressed


@pytest.mark.parametrize(
    ("sent", "pressed"),
    [
        ("\x1b[A", ["up"]),
        ("\x1bOP", ["f1"]),
        ("\x1b[1;2D", ["shift+left"]),
        ("\x1b\t", ["shift+tab"]),  # of the Linux console
        ("\x1b[Z", ["shift+tab"]),
        ("\x1b[?2026;2$y", []),
        ("j", ["j"]),
    ],
)
def test_a_sequence_stays_one_key_or_none(sent: str, pressed: list[str]) -> None:
    assert keys(sent) == pressed


@pytest.mark.parametrize("report", ["\x1b[?62;22c", "\x1b]11;rgb:0000/0000/0000", "\x1b[>41;354;0c"])
def test_a_report_that_textual_does_not_know_is_no_escape(report: str) -> None:
    assert "escape" not in keys(report)


class _Heard(TerminalDriver):
    def __init__(self, fileno: int) -> None:
        self.fileno, self._debug, self.exit_event = fileno, False, threading.Event()
        self.heard: list[str] = []

    def process_message(self, message: Message) -> None:
        if isinstance(message, Key):
            self.heard.append(message.key)


def test_the_driver_reads_by_that_parser() -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    driver = _Heard(slave)
    reading = threading.Thread(target=driver.run_input_thread)
    reading.start()
    os.write(master, b"\x1bj")
    until = time.monotonic() + 5
    while len(driver.heard) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    driver.exit_event.set()
    reading.join()
    os.close(master)
    os.close(slave)
    assert driver.heard == ["escape", "j"]
