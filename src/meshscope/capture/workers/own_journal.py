"""The journal of a rank of a user's own script, whose steps may be as short as a millisecond."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording.entries import Entry, StepDone

_TOGETHER_S = 0.1


class OwnJournal(RankJournal):
    """Writes the steps of a tenth of a second together: a write per step would cost a short one several per cent.

    A step of a tenth of a second or more is written at once. Whatever else is appended takes the steps before it
    along.
    """

    def __init__(self, recording: Path, rank: int, *, t0_unix_ns: int) -> None:
        super().__init__(recording, rank, t0_unix_ns=t0_unix_ns)
        self._waiting: list[Entry] = []
        self._written_s = 0.0
        self._guard = threading.Lock()

    def append(self, entry: Entry) -> None:
        with self._guard:
            self._waiting.append(entry)
            now_s = time.monotonic()
            if isinstance(entry, StepDone) and now_s - self._written_s < _TOGETHER_S:
                return
            self._written_s = now_s
            self._write()

    def flush(self) -> None:
        with self._guard:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            self._journal.append_all(self._waiting)
            self._waiting = []
