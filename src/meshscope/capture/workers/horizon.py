"""How far a rank may go: see ``capture.stability``."""

from __future__ import annotations

import time
from pathlib import Path

from meshscope.recording.control import Ask, Asked

_LOOK_EVERY_S = 0.002


class StepsEnough(Exception):  # noqa: N818  # no error: all ranks leave their loop with it, before the same step
    """The run ends before this step."""


class Horizon:
    """``is_bounded`` is false for a run that takes all its steps: nothing is looked for then."""

    def __init__(self, recording: Path, *, is_bounded: bool) -> None:
        self._asked = Asked(recording)
        self._is_bounded = is_bounded
        self._until = 0
        self._end: int | None = None

    def begin(self, step: int) -> None:
        """Before a step begins: returns once it may. Raises StepsEnough where the run has ended before it."""
        if not self._is_bounded:
            return
        self._take(self._asked.new())
        while self._end is None and step >= self._until:
            time.sleep(_LOOK_EVERY_S)
            self._take(self._asked.new())
        if self._end is not None and step >= self._end:
            raise StepsEnough(f"the run ends before step {step}")

    def _take(self, asks: list[Ask]) -> None:
        for ask in asks:
            if ask.what == "until":
                self._until = max(self._until, ask.end_step)
            elif ask.what == "end":
                self._end = ask.end_step
