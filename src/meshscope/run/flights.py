"""The flight recorders that ranks left in their recording when they hung, told their place by the journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from meshscope.errors import TraceError
from meshscope.readers import flight_recorder
from meshscope.recording.entries import FlightWritten
from meshscope.records import Record

Refusal = tuple[str, str, str]


@dataclass
class Flights:
    """Each announced dump is read once; one that is not there (yet) is looked for again.

    A rank that was asked several times has left several: the last one tells how far it has come.
    """

    folder: Path
    t0_unix_ns: int
    _known: dict[tuple[str, int], tuple[Record, ...] | TraceError] = field(default_factory=dict)

    def of(self, announced: Iterable[FlightWritten]) -> tuple[tuple[Record, ...], tuple[Refusal, ...]]:
        """Records (times in the recording's own) and refusals of the announced files."""
        records: list[Record] = []
        refused: list[Refusal] = []
        for entry in {entry.rank: entry for entry in announced}.values():
            found = self._found(entry)
            if isinstance(found, TraceError):
                refused.append((entry.path, found.message, found.hint))
            else:
                records += found
        return tuple(records), tuple(refused)

    def _found(self, entry: FlightWritten) -> tuple[Record, ...] | TraceError:
        if not (self.folder / entry.path).is_file():
            return TraceError("The flight recorder was announced but is not there.", hint="Copy its folder too.")
        key = (entry.path, entry.t_ns)
        if key not in self._known:
            self._known[key] = self._read(entry)
        return self._known[key]

    def _read(self, entry: FlightWritten) -> tuple[Record, ...] | TraceError:
        try:
            records = flight_recorder.read(self.folder / entry.path)
        except TraceError as error:
            return error
        # A dump holds no device work, and the recording's traces do.
        placed = (
            replace(record, source=entry.path, rank=entry.rank, rank_from="journal", cannot_say=())
            for record in records
        )
        return tuple(record.shifted(-self.t0_unix_ns) for record in placed)
