"""A folder of recordings, one per strategy: the comparison as of any time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from meshscope.errors import RecordingError
from meshscope.experiment import Plan
from meshscope.recording.entries import Ended, Entry
from meshscope.recording.journal import Tail, read_tails
from meshscope.recording.layout import JOURNAL, PLAN, planned, read_plan, recordings
from meshscope.run.reading import RunReader
from meshscope.run.state import SILENCE_NS, Run
from meshscope.units import counted

Refusal = tuple[str, str, str]


class Gallery:
    """The recordings of a folder (or the one recording that it is), growing while the plan is carried out.

    What cannot be read costs nothing else: see ``refused``. Raises RecordingError when there is neither a plan nor a
    recording, or nothing but what cannot be read.
    """

    def __init__(self, folder: Path, *, wall: Callable[[], int] = time.time_ns) -> None:
        self._folder = folder
        self._wall = wall
        self._readers: dict[Path, RunReader] = {}
        self._refused: dict[Path, Refusal] = {}
        self.plan: Plan | None = self._read_plan()
        self._supervisor: list[Entry] = []
        self._tails: dict[str, Tail] = {}
        self._find()
        if self.plan is None and not self._readers:
            raise RecordingError(
                f"{folder} holds no recording.",
                hint="Give the folder that meshscope run wrote, or open native traces with: meshscope analyze PATH",
            )

    def at(self, unix_ns: int) -> tuple[Plan | None, tuple[Run, ...]]:
        """The plan, and a Run for every recording that had begun, in the plan's order."""
        self._find()
        begun = (reader for reader in self._readers.values() if reader.start_unix_ns <= unix_ns)
        return self.plan, tuple(reader.at(unix_ns) for reader in begun)

    def supervisor_at(self, unix_ns: int) -> tuple[Entry, ...]:
        """What the supervisor wrote about the whole plan up to a time (its log, its end), in time order."""
        if self.plan is None:
            return ()
        self._poll()
        t0_unix_ns = self.plan.t0_unix_ns
        return tuple(entry for entry in self._supervisor if t0_unix_ns + entry.t_ns <= unix_ns)

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """(path, why, hint) of the plan and the recordings that are there and cannot be read, damaged lines too."""
        return (*self._refused.values(), *(_damaged(tail) for tail in self._tails.values() if tail.skipped))

    @property
    def start_unix_ns(self) -> int:
        if self.plan is not None:
            return self.plan.t0_unix_ns
        return min(reader.start_unix_ns for reader in self._readers.values())

    @property
    def stretches(self) -> tuple[tuple[str, int, int], ...]:
        """Strategy, start and newest entry (unix ns) of every recording there is, in the plan's order."""
        return tuple(
            (reader.experiment.strategy, reader.start_unix_ns, reader.newest_unix_ns)
            for reader in self._readers.values()
        )

    @property
    def end_unix_ns(self) -> int | None:
        """When all of it had ended; None while anything goes on or is still to come."""
        self._find()
        self._poll()
        ends = [reader.end_unix_ns() for reader in self._readers.values()]
        if any(end is None for end in ends):
            return None
        last_unix_ns = max([end for end in ends if end is not None], default=self.start_unix_ns)
        if self.plan is None:
            return last_unix_ns
        written = [self.plan.t0_unix_ns + entry.t_ns for entry in self._supervisor]
        last_unix_ns = max([last_unix_ns, *written])
        if any(isinstance(entry, Ended) for entry in self._supervisor):
            return last_unix_ns
        # Without an end of its own the supervisor is at work between two strategies, or gone.
        return last_unix_ns + SILENCE_NS if self._wall() - last_unix_ns >= SILENCE_NS else None

    def _find(self) -> None:
        """Only a plan brings recordings that are not there from the first, and none but those that it names."""
        if self._readers and len(self._readers) + len(self._refused) >= (len(self.plan.runs) if self.plan else 0):
            return
        found = planned(self._folder, self.plan) if self.plan is not None else recordings(self._folder)
        if any(path not in self._readers and path not in self._refused for path in found):
            opened = {path: self._opened(path) for path in found if path not in self._refused}
            self._readers = {path: reader for path, reader in opened.items() if reader is not None}
        if self._refused and not self._readers:
            _, why, hint = self.refused[-1]
            raise RecordingError(why, hint=hint)

    def _opened(self, path: Path) -> RunReader | None:
        if path in self._readers:
            return self._readers[path]
        try:
            return RunReader(path, wall=self._wall)
        except RecordingError as error:
            self._refused[path] = (str(path), error.message, error.hint)
            return None

    def _read_plan(self) -> Plan | None:
        """Without its plan a comparison is loose recordings."""
        try:
            return read_plan(self._folder)
        except RecordingError as error:
            self._refused[self._folder / PLAN] = (str(self._folder / PLAN), error.message, error.hint)
            return None

    def _poll(self) -> None:
        fresh = read_tails(self._folder / JOURNAL, self._tails) if self.plan is not None else []
        if fresh:
            self._supervisor = sorted(self._supervisor + fresh, key=lambda entry: entry.t_ns)


def _damaged(tail: Tail) -> Refusal:
    return (
        str(tail.path),
        f"{counted(tail.skipped, 'line')} of the supervisor's journal could not be read.",
        "The rest of it is shown.",
    )
