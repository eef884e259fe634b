"""Runs of many ranks, made in memory: one cause of lateness in each, and every number foreseen.

A step is 80 ms of computing, give or take one, and 10 ms of transfer after the last rank has come. The causes:
``late`` (rank LATE computes 20 ms longer), ``node`` (so do the ranks of machine NODE), ``roaming`` (in each step
another rank waits 30 ms for its batch), ``even`` (nobody).
"""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.experiment import Experiment
from meshscope.kinds import Kind
from meshscope.recording import layout
from meshscope.recording.entries import (
    Compiled,
    Entry,
    MemoryMeasured,
    Phase,
    RankEnded,
    RankStarted,
    StepDone,
    TraceWritten,
)
from meshscope.recording.journal import Journal
from meshscope.run import Run, fold
from meshscope.samples import SampleTable, StepTable
from meshscope.spans import Counts, Window, span_table

MS = 1_000_000
MB = 1_000_000
S = 1_000_000_000
STEPS = 200
PER_NODE = 8
LATE, NODE = 37, 3
CAUSES = ("late", "node", "roaming", "even")
GLOBAL_BATCH = 4096

Ints = npt.NDArray[np.int64]


def crowd(cause: str, ranks: int, *, steps: int = STEPS, traced: int | None = None) -> Run:
    """``traced`` are the last so many steps, one window per rank; all of them where it is None."""
    work_ns, data_ns = _own(cause, ranks, steps)
    arrival_ns = work_ns + data_ns
    length_ns = arrival_ns.max(axis=0) + 10 * MS
    start_ns = 3 * S + np.concatenate(([0], np.cumsum(length_ns)[:-1]))
    end_ns = start_ns + length_ns
    first = steps - (steps if traced is None else traced)
    windows = [
        _window(rank, start_ns[first:], data_ns[rank, first:], arrival_ns[rank, first:], end_ns[first:], first)
        for rank in range(ranks)
    ]
    run = fold(_experiment(ranks, steps), _entries(ranks, steps, first, int(end_ns[-1])), path=f"crowd-{cause}")
    return replace(
        run,
        now_ns=int(end_ns[-1]) + S,
        last_entry_ns=int(end_ns[-1]) + S,
        steps=step_table(start_ns, end_ns, data_ns),
        samples=_samples(ranks, int(end_ns[-1])),
        windows=tuple(windows),
    )


def _own(cause: str, ranks: int, steps: int) -> tuple[Ints, Ints]:
    """What each rank computes in each step, and how long it waits for its batch before; (ranks, steps) in ns."""
    rng = np.random.default_rng(ranks)
    work_ns = 80 * MS + rng.integers(-MS // 2, MS // 2, (ranks, steps))
    data_ns = np.full((ranks, steps), MS // 10, dtype=np.int64)
    if cause == "late":
        work_ns[LATE] += 20 * MS
    elif cause == "node":
        work_ns[NODE * PER_NODE : (NODE + 1) * PER_NODE] += 20 * MS
    elif cause == "roaming":
        data_ns[rng.integers(0, ranks, steps), np.arange(steps)] += 30 * MS
    return work_ns, data_ns


def step_table(start_ns: Ints, end_ns: Ints, data_ns: Ints) -> StepTable:
    """The journal of steps that all ranks begin and end together."""
    ranks, steps = data_ns.shape
    count = ranks * steps
    known: dict[str, Any] = {
        "rank": np.repeat(np.arange(ranks, dtype=np.int32), steps),
        "step": np.tile(np.arange(steps, dtype=np.int32), ranks),
        "start_ns": np.tile(start_ns, ranks),
        "end_ns": np.tile(end_ns, ranks),
        "tokens": np.full(count, GLOBAL_BATCH // ranks * 128),
        "samples": np.full(count, GLOBAL_BATCH // ranks),
        "loss": np.tile(7.6 * 0.985 ** np.arange(steps), ranks),
        "data_wait_ns": data_ns.reshape(-1),
        "is_profiled": np.zeros(count, dtype=bool),
    }
    unknown = {name: np.full(count, -1) for name in StepTable.__dataclass_fields__ if name not in known}
    return StepTable(**known, **unknown)


def _window(rank: int, start_ns: Ints, data_ns: Ints, arrival_ns: Ints, end_ns: Ints, first: int) -> Window:
    """In each step a kernel, then the collective that it feeds, which lasts until the last rank's data has come."""
    steps = len(start_ns)
    spans = span_table(
        start_ns=np.stack((start_ns + data_ns, start_ns + arrival_ns), axis=1).reshape(-1),
        end_ns=np.stack((start_ns + arrival_ns, end_ns), axis=1).reshape(-1),
        rank=rank,
        kind=np.tile([int(Kind.COMPUTE), int(Kind.COLLECTIVE)], steps),
        name=np.tile([0, 1], steps),
        names=("gemm", "ncclDevKernel_AllReduce"),
        collective=np.tile([-1, 0], steps),
        collectives=("all_reduce",),
        size_bytes=np.tile([-1, 25_000_000], steps),
        step=np.repeat(np.arange(first, first + steps), 2),
    )
    return Window(
        rank=rank,
        device=rank % PER_NODE,
        rank_from="trace",
        framework="torch",
        device_kind="gpu",
        start_ns=int(start_ns[0]),
        end_ns=int(end_ns[-1]),
        steps=tuple(range(first, first + steps)),
        step_ns=np.stack((start_ns, end_ns), axis=1),
        is_complete=True,
        spans=spans,
        counts=Counts(read=6 * steps, device=2 * steps),
        source=f"traces/rank{rank}.pt.trace.json.gz",
        host=f"node{rank // PER_NODE}",
    )


def _experiment(ranks: int, steps: int) -> Experiment:
    return Experiment(
        t0_unix_ns=1_767_225_600 * S, strategy="ddp", title="PyTorch DDP", framework="torch", ranks=ranks,
        device_kind="gpu", model="tiny", planned_steps=steps, global_batch=GLOBAL_BATCH, sequence_length=128,
        cores=4 * ranks,
    )  # fmt: skip


def _entries(ranks: int, steps: int, first: int, end_ns: int) -> list[Entry]:
    """What every rank says besides its steps; the fullest is the last but two."""
    found: list[Entry] = [Phase(t_ns=1, rank=-1, phase="launching")]
    shape = ("tokens int32[8,128] → int32[7,128]",)
    for rank in range(ranks):
        sizes = {"parameters": 10 * MB, "gradients": 10 * MB, "optimizer": 20 * MB, "activations": 90 * MB + rank * 100}
        sizes["activations"] += 60 * MB if rank == ranks - 3 else 0
        found += [
            RankStarted(t_ns=S + rank, rank=rank, device=rank % PER_NODE, device_name="H100", device_kind="gpu",
                        pid=4000 + rank),
            Phase(t_ns=2 * S + rank, rank=rank, phase="training"),
            MemoryMeasured(t_ns=4 * S + rank, rank=rank, device=rank % PER_NODE, step=1, source="allocator",
                           categories=sizes, how=dict.fromkeys(sizes, "exact"), peak_bytes=sum(sizes.values()),
                           peak_how="measured"),
            Compiled(t_ns=5 * S + rank, rank=rank, name="step", stage="compile", duration_ns=1500 * MS + rank * 1000,
                     step=steps // 2, is_recompilation=True, changed=shape),
            TraceWritten(t_ns=end_ns + rank, rank=rank, path=f"traces/rank{rank}.pt.trace.json.gz", format="kineto",
                         first_step=first, end_step=steps, size_bytes=MB, stop_ns=2 * MS),
        ]  # fmt: skip
    return found


def fallen(run: Run) -> Run:
    """The same run, of which rank LATE failed, and all others were ended for that."""
    at_ns = run.last_entry_ns
    lines = ("step 199 loss 3.01", "RuntimeError: CUDA error: an illegal memory access was encountered")
    first = RankEnded(t_ns=at_ns, rank=LATE, exit_code=1, why="RuntimeError: CUDA error", log_lines=lines)
    others = [
        RankEnded(t_ns=at_ns + 1 + rank, rank=rank, exit_code=-15, why="SIGTERM", log_lines=("step 199 loss 3.01",))
        for rank in range(run.experiment.ranks)
        if rank != LATE
    ]
    return replace(run, rank_ends=(first, *others))


def _samples(ranks: int, end_ns: int) -> SampleTable:
    """Twice a second: what each machine's host does, and each rank's process and device; device LATE is idle."""
    hosts = max(ranks // PER_NODE, 1)
    devices = (*(f"gpu {rank}" for rank in range(ranks)), *(f"host node{host}" for host in range(hosts)),
               *(f"rank {rank}" for rank in range(ranks)))  # fmt: skip
    fields = ("memory_used_bytes", "rss_bytes", "utilization_frac")
    per_tick = [*((d, f) for d in range(ranks) for f in (0, 2)), *((ranks + h, 2) for h in range(hosts)),
                *((ranks + hosts + r, 1) for r in range(ranks))]  # fmt: skip
    ticks = end_ns // (S // 2)
    device, which = (np.array(column, dtype=np.int32) for column in zip(*per_tick, strict=True))
    value = np.choose(which, [40e9 + 1e6 * device, 371e6 + 1e3 * device, np.where(device == LATE, 0.05, 0.96)])
    return SampleTable(
        time_ns=np.repeat(np.arange(ticks) * (S // 2), len(per_tick)),
        device=np.tile(device, ticks),
        field=np.tile(which, ticks),
        value=np.tile(value, ticks),
        devices=devices,
        fields=fields,
    )


# A journal that grows


def begin(folder: Path, ranks: int) -> None:
    layout.create(folder, _experiment(ranks, 10_000))


def journals(folder: Path, ranks: int) -> list[Journal]:
    """One per rank, as the ranks of a run have; a process of many ranks may need more open files than it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2 * ranks + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * ranks + 200, hard), hard))
    t0 = layout.read_experiment(folder).t0_unix_ns
    return [Journal(folder, f"rank{rank}", t0_unix_ns=t0) for rank in range(ranks)]


def step(to: list[Journal], number: int) -> None:
    """Every rank writes a step of a tenth of a second."""
    end_ns = (number + 1) * S // 10
    for rank, journal in enumerate(to):
        journal.append(
            StepDone(t_ns=end_ns + rank, rank=rank, step=number, start_ns=end_ns - S // 10, end_ns=end_ns, tokens=512,
                     samples=4, loss=3.0, data_wait_ns=MS)
        )  # fmt: skip


def close(to: list[Journal]) -> None:
    for journal in to:
        journal.close()
