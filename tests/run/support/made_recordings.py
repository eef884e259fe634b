"""Small recordings, written entry by entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meshscope.experiment import Experiment, Plan, PlannedRun
from meshscope.recording import layout
from meshscope.recording.entries import Entry, StepDone, TraceWritten
from meshscope.recording.journal import Journal

T0 = 1_790_000_000_000_000_000
S = 1_000_000_000


def experiment(strategy: str = "ddp", *, t0_unix_ns: int = T0, **about: Any) -> Experiment:
    known: dict[str, Any] = {
        "framework": "torch",
        "ranks": 2,
        "device_kind": "cpu",
        "model": "tiny",
        "planned_steps": 4,
    }
    return Experiment(t0_unix_ns=t0_unix_ns, strategy=strategy, title=strategy, **(known | about))


def recording(folder: Path, entries: dict[str, list[Entry]], **about: Any) -> Path:
    """A recording with one journal file per writer."""
    here = experiment(**about)
    layout.create(folder, here)
    for writer, written in entries.items():
        append(folder, writer, written, t0_unix_ns=here.t0_unix_ns)
    return folder


def append(folder: Path, writer: str, entries: list[Entry], *, t0_unix_ns: int = T0) -> None:
    journal = Journal(folder, writer, t0_unix_ns=t0_unix_ns)
    for entry in entries:
        journal.append(entry)
    journal.close()


def planned(folder: Path, strategies: list[str]) -> Plan:
    runs = [PlannedRun(strategy=name, title=name, framework="torch", folder=name) for name in strategies]
    plan = Plan(t0_unix_ns=T0, runs=runs, ranks=2, model="tiny")
    layout.create_plan(folder, plan)
    return plan


def done(step: int, rank: int, *, t_s: float) -> StepDone:
    return StepDone(t_ns=round(t_s * S), rank=rank, step=step, start_ns=round(t_s * S) - S // 2, end_ns=round(t_s * S))


def written(path: str, *, t_s: float, rank: int = 0, first: int = 4, end: int = 6) -> TraceWritten:
    return TraceWritten(
        t_ns=round(t_s * S), rank=rank, path=path, format="kineto", first_step=first, end_step=end, size_bytes=1
    )
