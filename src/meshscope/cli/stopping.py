"""How a command without a screen is left: the first Ctrl-C or SIGTERM asks for the end, a second does not wait."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType

import click

from meshscope.recording.control import Ask, ask


class Stopping:
    """While it is entered, the first signal asks the supervisor of ``folder`` to stop, and ``words`` are said.

    The second raises KeyboardInterrupt.
    """

    def __init__(self, folder: Path, words: str) -> None:
        self._folder = folder
        self._words = words
        self.was_asked = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Stopping:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # exactly what signal.signal returned

    def _asked(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.was_asked:
            raise KeyboardInterrupt
        self.was_asked = True
        ask(self._folder, Ask(what="stop"))
        click.echo(self._words, err=True)
