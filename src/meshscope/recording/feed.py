"""Reads a recording while it is written: what every writer has appended since the last look."""

from __future__ import annotations

from pathlib import Path

from meshscope.experiment import Experiment
from meshscope.recording.entries import Entry
from meshscope.recording.journal import Tail, read_tails
from meshscope.recording.layout import JOURNAL, read_experiment
from meshscope.recording.sanity import is_possible


class Feed:
    """The entries of one recording as they come; none is kept. Not safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.experiment: Experiment = read_experiment(folder)
        self._tails: dict[str, Tail] = {}
        self._impossible = 0

    def poll(self) -> list[Entry]:
        """Take in what every writer has appended, and return it (by writer, then by arrival)."""
        fresh = read_tails(self.folder / JOURNAL, self._tails)
        possible = [entry for entry in fresh if is_possible(entry, self.experiment.ranks)]
        self._impossible += len(fresh) - len(possible)
        return possible

    @property
    def skipped(self) -> int:
        """Lines that could not be read as entries, or whose entries cannot be."""
        return self._impossible + sum(tail.skipped for tail in self._tails.values())
