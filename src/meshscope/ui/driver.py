"""The terminal's side of leaving: nothing that it still sends may be typed into the shell.

A terminal answers queries and reports the mouse some time after it was asked to; over a slow line that is after a
quick user has left. So every mode that makes it talk is switched off first, and what it said until then is read away:
up to its answer to one last query where it is known to answer, else as long as its first answers may take.
"""

from __future__ import annotations

import os
import re
import select
import time

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message
from textual.messages import InBandWindowResize, TerminalSupportsSynchronizedOutput

from meshscope.ui.escaping import TwoKeys
from meshscope.ui.guard import Guard

TALKING = ("1000", "1002", "1003", "1006", "1015", "1016", "1004", "2004", "2048")
"""Modes in which a terminal says something unasked: the mouse in its encodings, focus, what is pasted, its size."""

# Keys as they always were, then the modes. Textual itself leaves 1016 (the mouse in pixels) on.
_QUIET = "\x1b[<u" + "".join(f"\x1b[?{mode}l" for mode in TALKING)

_ASK, _ANSWER = "\x1b[5n", re.compile(rb"\x1b\[[03]n")
"""Device status report (ECMA-48 8.3.35): answers come in the order of the questions."""

PATIENCE_S = 1.0


class TerminalDriver(LinuxDriver):
    """Textual's driver, which waits for the terminal's last word."""

    _begun_s = 0.0
    _has_answered = False
    _is_quiet = True
    _guard: Guard | None = None

    def start_application_mode(self) -> None:
        if self._guard is None and os.isatty(self.fileno):
            self._guard = Guard(self.fileno, TALKING)
        self._begun_s = time.monotonic()
        self._is_quiet = False
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def stop_application_mode(self) -> None:
        super().stop_application_mode()
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.dismiss()

    def run_input_thread(self) -> None:
        # Textual makes the parser by itself, under this name.
        linux_driver.XTermParser = TwoKeys  # type: ignore[attr-defined]
        super().run_input_thread()

    def process_message(self, message: Message) -> None:
        if isinstance(message, TerminalSupportsSynchronizedOutput | InBandWindowResize):
            self._has_answered = True
        super().process_message(message)

    def disable_input(self) -> None:
        """Called more than once on the way out; the first time the terminal is quietened."""
        is_first, self._is_quiet = not self._is_quiet, True
        if is_first and self._writer_thread is not None:
            self.write(_QUIET)
        super().disable_input()  # from here on nobody else reads
        if is_first and self.input_tty:
            self._read_away()

    def _read_away(self) -> None:
        """Read what the terminal says up to its answer, or until no more can be on the way."""
        if self._has_answered:
            self.write(_ASK)
        until_s = (time.monotonic() if self._has_answered else self._begun_s) + PATIENCE_S
        said = b""
        while (left_s := until_s - time.monotonic()) > 0 and not _ANSWER.search(said):
            if not select.select([self.fileno], [], [], left_s)[0]:
                return
            try:
                more = os.read(self.fileno, 4096)
            except OSError:  # the terminal has gone away
                return
            if not more:
                return
            said = said[-8:] + more
