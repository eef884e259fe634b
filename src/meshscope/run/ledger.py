"""Entries, put where a Run wants them; any order of arrival gives an equal Run."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from meshscope.experiment import Experiment
from meshscope.recording.entries import (
    Checked,
    Compiled,
    Ended,
    Entry,
    Log,
    MemoryMeasured,
    Phase,
    RankEnded,
    RankStarted,
    Recognized,
    Sampled,
    SensorFailed,
    Settled,
    StacksTaken,
    StepDone,
    TraceWritten,
    WindowAsked,
)
from meshscope.recording.numbers import encoded
from meshscope.run.columns import SampleColumns, StepColumns
from meshscope.run.state import Run
from meshscope.spans import Window

E = TypeVar("E", bound=Entry)
_Keyed = tuple[tuple[int, int, bytes], Entry]

_FIELDS: dict[str, type[Entry]] = {
    "phases": Phase, "ranks": RankStarted, "windows_asked": WindowAsked, "traces": TraceWritten,
    "compiles": Compiled, "memory": MemoryMeasured, "checks": Checked, "sensor_failures": SensorFailed,
    "logs": Log, "settled": Settled, "rank_ends": RankEnded, "stacks": StacksTaken,
}  # fmt: skip


class Ledger:
    """The entries of one recording so far. ``add`` takes what is new; ``run`` is the state at a time."""

    def __init__(self, experiment: Experiment, path: str) -> None:
        self.experiment = experiment
        self.path = path
        self._steps, self._samples = StepColumns(), SampleColumns()
        self._others: dict[type[Entry], list[_Keyed]] = defaultdict(list)

    def add(self, entries: Iterable[Entry]) -> None:
        by_type: dict[type[Entry], list[Any]] = defaultdict(list)
        for entry in entries:
            by_type[type(entry)].append(entry)
        self._steps.add(by_type.pop(StepDone, []))
        self._samples.add(by_type.pop(Sampled, []))
        for kind, fresh in by_type.items():
            self._others[kind] = sorted(self._others[kind] + [(_order(entry), entry) for entry in fresh], key=_key)

    def until(self, kind: type[E], now_ns: int) -> tuple[E, ...]:
        """Entries of a type that were written at or before a time, sorted by (time, rank)."""
        keyed = self._others[kind]
        cut = bisect_right(keyed, now_ns, key=_written_ns)
        return tuple(entry for _, entry in keyed[:cut])  # type: ignore[misc]  # lists are by type

    def run(
        self,
        now_ns: int,
        *,
        last_entry_ns: int,
        windows: tuple[Window, ...] = (),
        refused: tuple[tuple[str, str, str], ...] = (),
        skipped_lines: int = 0,
        notes: tuple[str, ...] = (),
    ) -> Run:
        entries: dict[str, Any] = {name: self.until(kind, now_ns) for name, kind in _FIELDS.items()}
        ends = self.until(Ended, now_ns)
        return Run(
            path=self.path,
            experiment=_recognized(self.experiment, self.until(Recognized, now_ns)),
            now_ns=now_ns,
            last_entry_ns=last_entry_ns,
            steps=self._steps.table(now_ns),
            lost_losses=self._steps.lost(now_ns),
            samples=self._samples.table(now_ns),
            windows=tuple(sorted(windows, key=lambda window: (window.rank, window.start_ns, window.source))),
            refused=refused,
            ended=ends[-1] if ends else None,
            skipped_lines=skipped_lines,
            notes=notes,
            **entries,
        )


def fold(experiment: Experiment, entries: Iterable[Entry], *, now_ns: int | None = None, path: str = "") -> Run:
    """The Run of some entries, up to ``now_ns`` (all of them when None). Their order does not matter."""
    seen = [entry for entry in entries if now_ns is None or entry.t_ns <= now_ns]
    last_ns = max((entry.t_ns for entry in seen), default=0)
    ledger = Ledger(experiment, path)
    ledger.add(seen)
    return ledger.run(last_ns if now_ns is None else now_ns, last_entry_ns=last_ns)


def _recognized(head: Experiment, said: tuple[Recognized, ...]) -> Experiment:
    """The head with what the first rank said of the script; every rank says it, and some may know more than others."""
    if not said:
        return head
    first = min(said, key=lambda entry: (entry.rank, entry.t_ns))
    return msgspec.structs.replace(
        head,
        framework=first.framework,
        ranks=max(entry.ranks for entry in said),
        device_kind=first.device_kind,
        seen=first.seen,
        title=first.title,
        parameters=first.parameters,
        versions=head.versions | first.versions,
    )


def _order(entry: Entry) -> tuple[int, int, bytes]:
    """By time, then rank, then content: a total order, so that ties do not depend on arrival."""
    return entry.t_ns, getattr(entry, "rank", -1), encoded(entry)


def _key(keyed: _Keyed) -> tuple[int, int, bytes]:
    return keyed[0]


def _written_ns(keyed: _Keyed) -> int:
    return keyed[0][0]
