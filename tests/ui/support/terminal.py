"""A pseudo-terminal with a screen on it."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

PLAY = Path(__file__).parent / "play.py"
PATIENCE_S = 30.0
ON = "\x1b[?1049h"
OFF = ("\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l", "\x1b[?1003l", "\x1b[?2004l", "\x1b[?7h")


class Terminal:
    """A pseudo-terminal with a program on it, in a session of its own."""

    def __init__(
        self,
        *arguments: str,
        size: tuple[int, int] = (100, 30),
        environ: dict[str, str] | None = None,
        program: tuple[str, ...] = (str(PLAY),),
    ) -> None:
        self.master, self.slave = pty.openpty()
        width, height = size
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.output = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end within a character
        self.child = subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=os.environ | {"TERM": "xterm-256color"} | (environ or {}),
            start_new_session=True,
        )

    def read(self, seconds: float = 0.2) -> str:
        """Take in what has been written so far."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and select.select([self.master], [], [], 0.05)[0]:
            try:
                self.output += self._decoder.decode(os.read(self.master, 65536))
            except OSError:
                break
        return self.output

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while text not in self.read():
            assert time.monotonic() < end, f"{text!r} never came: {self.output[-2000:]!r}"
            assert self.child.poll() is None, f"it ended early: {self.output[-2000:]!r}"

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> int:
        """The exit status, once the program has ended."""
        end = time.monotonic() + PATIENCE_S
        while self.child.poll() is None and time.monotonic() < end:
            self.read()
        self.read(0.5)
        assert self.child.returncode is not None, "it did not end"
        return self.child.returncode

    def assert_as_it_was(self) -> None:
        tail = self.output[self.output.rindex(ON) :]
        for sequence in OFF:
            assert sequence in tail, f"{sequence!r} was not written"
        after = termios.tcgetattr(self.slave)
        assert after[:4] == self.before[:4]

    def close(self) -> None:
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.slave)
        if self.master >= 0:
            os.close(self.master)
