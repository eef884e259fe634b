"""What is known of one run at one time."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.experiment import Experiment
from meshscope.recording.entries import (
    Checked,
    Compiled,
    Ended,
    Log,
    MemoryMeasured,
    Phase,
    RankEnded,
    RankStarted,
    SensorFailed,
    Settled,
    StacksTaken,
    TraceWritten,
    WindowAsked,
)
from meshscope.records import Record
from meshscope.samples import LostLoss, SampleTable, StepTable
from meshscope.spans import Window

SILENCE_NS = 15_000_000_000
"""A supervisor samples its sensors twice a second: one that has written nothing for this long is gone."""


@dataclass(frozen=True, eq=False)
class Run:
    """One recording as of ``now_ns`` (its own time). Tuples are sorted by (time, rank).

    ``windows`` are the profiled stretches read from native traces, by (rank, start); ``refused`` pairs the
    path of a trace that could not be read with the reason and a hint. ``now_ns`` of a recording that has ended is
    ``last_entry_ns``, however much later it is looked at. ``ended`` is None while the run goes on, and also
    for a recording whose supervisor was killed: then ``now_ns`` is far past ``last_entry_ns``. ``skipped_lines`` counts
    the journal's lines that say nothing, or something that cannot be. ``records`` are what files without spans told:
    allocators' snapshots, flight recorders, device logs (whose readings are in ``samples`` too).
    """

    path: str
    experiment: Experiment
    now_ns: int
    last_entry_ns: int
    steps: StepTable
    samples: SampleTable
    windows: tuple[Window, ...] = ()
    refused: tuple[tuple[str, str, str], ...] = ()
    phases: tuple[Phase, ...] = ()
    ranks: tuple[RankStarted, ...] = ()
    windows_asked: tuple[WindowAsked, ...] = ()
    traces: tuple[TraceWritten, ...] = ()
    compiles: tuple[Compiled, ...] = ()
    memory: tuple[MemoryMeasured, ...] = ()
    checks: tuple[Checked, ...] = ()
    sensor_failures: tuple[SensorFailed, ...] = ()
    logs: tuple[Log, ...] = ()
    settled: tuple[Settled, ...] = ()
    rank_ends: tuple[RankEnded, ...] = ()
    ended: Ended | None = None
    skipped_lines: int = 0
    notes: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()
    stacks: tuple[StacksTaken, ...] = ()
    lost_losses: tuple[LostLoss, ...] = ()

    @property
    def name(self) -> str:
        """What it is called beside others: its strategy, or the title of what nobody described."""
        return self.experiment.strategy or self.experiment.title

    @property
    def is_simulated(self) -> bool:
        """Whether it was predicted, so that nothing of it was measured."""
        return self.experiment.simulated is not None

    @property
    def is_lost(self) -> bool:
        """Whether the recording broke off: it did not end, and nothing was written for too long."""
        return self.ended is None and self.now_ns - self.last_entry_ns >= SILENCE_NS
