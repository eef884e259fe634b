"""A command in the foreground: signals, input and output are the command's, and this process is not in its way.

The command is in this process's own group, so what a terminal sends (Ctrl-C, Ctrl-\\, a hang-up) reaches it without us,
and must not reach it twice: a second Ctrl-C would tear a script out of its clean-up. What is sent to this process alone
is passed on. Linux tells the two apart; elsewhere a Ctrl-C is taken to come from the terminal that there is.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from meshscope.capture.supervisor import Stop

_PASSED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_FROM_THE_KERNEL = 0x80  # si_code SI_KERNEL, siginfo(7): a terminal's key, not a process's kill()
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Passing(Stop):
    """``heard`` is the last signal that asks a program to end, "" while none came."""

    keeps_output = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.heard = ""
        self._early: list[int] = []

    def listen(self) -> None:
        return

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """While the command runs no signal ends this process; call from the main thread, before the command starts."""
        passed = [number for number in _PASSED if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, lambda number, _: self._early.append(number)) for number in passed}
        try:
            yield
        finally:
            self._unblock()
            for number, handler in before.items():
                signal.signal(number, handler)

    def begun(self) -> None:
        """The command runs, and has inherited no mask: from here on signals wait to be asked for."""
        if hasattr(signal, "sigtimedwait"):
            signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED)

    def _unblock(self) -> None:
        if hasattr(signal, "sigtimedwait"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED)

    def wait(self, seconds: float, child: subprocess.Popen[bytes]) -> None:
        """Pass on what comes meanwhile."""
        deadline = time.monotonic() + seconds
        for number in [self._early.pop() for _ in list(self._early)]:
            self._hear(number, child, is_ours=number != signal.SIGINT or not _has_terminal())
        if not hasattr(signal, "sigtimedwait"):
            time.sleep(seconds)
            return
        while (left := deadline - time.monotonic()) > 0:
            told = signal.sigtimedwait(_PASSED, left)
            if told is None:
                return
            self._hear(told.si_signo, child, is_ours=told.si_code != _FROM_THE_KERNEL)

    def _hear(self, number: int, child: subprocess.Popen[bytes], *, is_ours: bool) -> None:
        if number in _ENDS:
            self.heard = signal.Signals(number).name
        if is_ours and child.poll() is None:
            child.send_signal(number)


def _has_terminal() -> bool:
    """Whether a terminal's keys go to this process's group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
