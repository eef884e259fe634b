"""Folds a made folder as ``run.Gallery`` folds a real one, with windows made up instead of read."""

from __future__ import annotations

from pathlib import Path

import made
import numpy as np

from meshscope.experiment import Plan
from meshscope.recording import layout
from meshscope.recording.entries import (
    Compiled,
    Ended,
    Entry,
    Log,
    MemoryMeasured,
    Phase,
    RankEnded,
    RankStarted,
    Sampled,
    SensorFailed,
    StepDone,
    TraceWritten,
    WindowAsked,
)
from meshscope.recording.feed import Feed
from meshscope.run import Run
from meshscope.samples import SampleTable, StepTable


class MadeReel:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._feeds: dict[Path, Feed] = {}
        self._kept: dict[tuple[Path, int], Run] = {}

    def at(self, unix_ns: int) -> tuple[Plan | None, tuple[Run, ...]]:
        runs = []
        for path in layout.recordings(self.folder):
            feed = self._feeds.setdefault(path, Feed(path))
            feed.poll()
            if feed.experiment.t0_unix_ns <= unix_ns:
                entries = feed.until(unix_ns)
                key = (path, len(entries))
                if key not in self._kept:
                    self._kept[key] = fold(feed, entries, unix_ns)
                runs.append(self._kept[key])
        return layout.read_plan(self.folder), tuple(runs)


def fold(feed: Feed, entries: list[Entry], unix_ns: int) -> Run:
    def of(kind: type) -> tuple:  # type: ignore[type-arg]
        return tuple(entry for entry in entries if isinstance(entry, kind))

    done = of(StepDone)
    traces = of(TraceWritten)
    bounds = {entry.step: (entry.start_ns, entry.end_ns) for entry in done}
    return Run(
        path=str(feed.folder),
        experiment=feed.experiment,
        now_ns=unix_ns - feed.experiment.t0_unix_ns,
        last_entry_ns=entries[-1].t_ns if entries else 0,
        steps=_steps(done),
        samples=_samples(of(Sampled)),
        windows=made.windows(feed.experiment.strategy, traces, bounds),
        phases=of(Phase),
        ranks=of(RankStarted),
        windows_asked=of(WindowAsked),
        traces=traces,
        compiles=of(Compiled),
        memory=of(MemoryMeasured),
        sensor_failures=of(SensorFailed),
        logs=of(Log),
        rank_ends=of(RankEnded),
        ended=next(iter(of(Ended)), None),
    )


def _steps(done: tuple[StepDone, ...]) -> StepTable:
    rows = sorted(done, key=lambda entry: (entry.rank, entry.step))
    kinds = {"rank": np.int32, "step": np.int32, "loss": np.float64, "is_profiled": np.bool_}
    columns = {
        name: np.array([getattr(row, name) for row in rows], dtype=kinds.get(name, np.int64))
        for name in StepTable.__dataclass_fields__
    }
    return StepTable(**columns)


def _samples(readings: tuple[Sampled, ...]) -> SampleTable:
    rows = [(r.t_ns, r.device, field, value) for r in readings for field, value in r.values.items()]
    devices = tuple(dict.fromkeys(row[1] for row in rows))
    fields = tuple(dict.fromkeys(row[2] for row in rows))
    return SampleTable(
        time_ns=np.array([row[0] for row in rows], dtype=np.int64),
        device=np.array([devices.index(row[1]) for row in rows], dtype=np.int32),
        field=np.array([fields.index(row[2]) for row in rows], dtype=np.int32),
        value=np.array([row[3] for row in rows], dtype=np.float64),
        devices=devices,
        fields=fields,
    )
