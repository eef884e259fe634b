"""A rank's own journal: what it does now, step by step, and its last word."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from meshscope.recording.entries import Entry, Log, Phase
from meshscope.recording.journal import Journal

_HEARTBEAT_S = 1.0


class RankJournal:
    """``rank`` is that of the process's first device; the journal is named after it."""

    def __init__(self, recording: Path, rank: int, *, t0_unix_ns: int) -> None:
        self.rank = rank
        self.t0_unix_ns = t0_unix_ns
        self._journal = Journal(recording, f"rank{rank}", t0_unix_ns=t0_unix_ns)

    def now_ns(self) -> int:
        return self._journal.now_ns()

    def append(self, entry: Entry) -> None:
        self._journal.append(entry)

    def phase(self, phase: str, detail: str = "") -> None:
        self.append(Phase(t_ns=self.now_ns(), rank=self.rank, phase=phase, detail=detail))

    def log(self, level: str, text: str) -> None:
        self.append(Log(t_ns=self.now_ns(), rank=self.rank, level=level, text=text))

    @contextmanager
    def beating(self, phase: str, *, after: str, detail: str = "") -> Iterator[None]:
        """Say ``phase`` and repeat it every second, so that a long one is not taken for a hang; then say ``after``."""
        self.phase(phase, detail)
        is_over = threading.Event()
        heart = threading.Thread(target=self._beat, args=(phase, detail, is_over), daemon=True, name="heartbeat")
        heart.start()
        try:
            yield
        finally:
            is_over.set()
            heart.join()
            self.phase(after)

    def _beat(self, phase: str, detail: str, is_over: threading.Event) -> None:
        seconds = 0
        while not is_over.wait(_HEARTBEAT_S):
            seconds += 1
            self.phase(phase, f"{detail} {seconds} s".strip())
