"""The windows that the supervisor asked for, as one rank comes upon them step by step."""

from __future__ import annotations

from pathlib import Path

from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording.control import Ask, Asked


class AskedWindows:
    """``has_warmup`` is false for a profiler that needs none (JAX's); the steps before a window are then its own."""

    def __init__(self, recording: Path, journal: RankJournal, *, has_warmup: bool) -> None:
        self._asked = Asked(recording)
        self._journal = journal
        self._has_warmup = has_warmup
        self._windows: list[Ask] = []

    def at(self, step: int) -> Ask | None:
        """The window whose profiling, warm-up included, is to begin right before ``step``; costs a ``stat``.

        One that should have begun earlier is skipped as a whole, and said so: a rank that joined in the middle would
        show other steps than its peers.
        """
        self._windows += (ask for ask in self._asked.new() if ask.what == "window")
        late = [window for window in self._windows if self._begin(window) < step]
        for window in late:
            steps = f"{window.first_step}–{window.end_step - 1}"
            self._journal.log("warning", f"The window of steps {steps} was asked for too late: it is at step {step}.")
        begun = [window for window in self._windows if self._begin(window) == step]
        self._windows = [window for window in self._windows if self._begin(window) > step]
        return begun[0] if begun else None

    def _begin(self, window: Ask) -> int:
        return window.first_step - (window.warmup if self._has_warmup else 0)
