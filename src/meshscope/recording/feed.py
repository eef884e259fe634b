"""Reads a recording back as time passes: live and replay are this one path with different clocks."""

from __future__ import annotations

import bisect
from pathlib import Path

from meshscope.experiment import Experiment
from meshscope.recording.entries import Ended, Entry
from meshscope.recording.journal import Tail, read_tails
from meshscope.recording.layout import JOURNAL, read_experiment
from meshscope.recording.sanity import is_possible


class Feed:
    """The entries of one recording up to a time. Not safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.experiment: Experiment = read_experiment(folder)
        self._tails: dict[str, Tail] = {}
        self._entries: list[Entry] = []
        self._is_sorted = True
        self._impossible = 0

    def poll(self) -> list[Entry]:
        """Take in what every writer has appended, and return it (by writer, then by arrival)."""
        fresh = read_tails(self.folder / JOURNAL, self._tails)
        possible = [entry for entry in fresh if is_possible(entry, self.experiment.ranks)]
        self._impossible += len(fresh) - len(possible)
        fresh = possible
        self._entries += fresh
        self._is_sorted = self._is_sorted and not fresh
        return fresh

    def until(self, unix_ns: int) -> list[Entry]:
        """Every entry written at or before ``unix_ns``, in time order, then in order of arrival."""
        self._sort()
        cut = bisect.bisect_right(self._entries, unix_ns - self.experiment.t0_unix_ns, key=_time)
        return self._entries[:cut]

    def _sort(self) -> None:
        if not self._is_sorted:
            self._entries.sort(key=_time)
            self._is_sorted = True

    @property
    def skipped(self) -> int:
        """Lines that could not be read as entries, or whose entries cannot be."""
        return self._impossible + sum(tail.skipped for tail in self._tails.values())

    @property
    def has_ended(self) -> bool:
        return any(isinstance(entry, Ended) for entry in reversed(self._entries))

    @property
    def last_unix_ns(self) -> int:
        """When the newest entry was written; the start while there is none."""
        self._sort()
        return self.experiment.t0_unix_ns + (self._entries[-1].t_ns if self._entries else 0)


def _time(entry: Entry) -> int:
    return entry.t_ns
