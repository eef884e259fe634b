"""A made comparison: a folder written through the real recording classes, whose numbers a test can foresee.

Four strategies on four ranks (and two baselines) one after another; every number follows from ``SHAPES`` and a
seeded generator. Journals and traces are real files; JAX's are written as Kineto traces too, which are easily made.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from meshscope.experiment import Experiment, Plan, PlannedRun
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
from meshscope.recording.journal import Journal, Tail

T0 = 1_767_225_600_000_000_000
MS = 1_000_000
S = 1_000_000_000
RANKS = 4
STEPS = 60
BATCH = 32
WINDOWS = ((10, 12), (40, 42))


@dataclass(frozen=True)
class Shape:
    """A strategy's step in ms: alone computing, computing beside communication, communicating alone, idle."""

    framework: str
    title: str
    compute: float
    hidden: float
    exposed: float
    idle: float
    memory_mb: tuple[float, ...]
    compile_s: float = 0.0
    lines: int = 3
    is_baseline: bool = False

    @property
    def step_ms(self) -> float:
        return self.compute + self.hidden + self.exposed + self.idle


SHAPES = {
    "ddp": Shape("torch", "PyTorch DDP: a full replica per rank", 43.0, 14.0, 5.6, 7.4, (10.7, 10.7, 21.4, 91.0, 12.0)),
    "fsdp": Shape(
        "torch", "PyTorch FSDP2: every block sharded", 71.0, 12.0, 45.6, 18.6, (2.7, 2.7, 5.4, 91.0, 19.2), lines=11
    ),
    "pmap": Shape(
        "jax", "JAX pmap: one replica per device", 50.0, 4.0, 10.0, 16.4, (10.7, 10.7, 21.4, 80.0, 8.0), 1.9, 5
    ),
    "pjit": Shape(
        "jax", "JAX jit over a mesh: parameters sharded", 61.0, 2.0, 21.0, 20.0, (2.7, 2.7, 5.4, 80.0, 22.0), 2.6, 9
    ),
    "torch-single": Shape(
        "torch", "one device, torch", 205.0, 0, 0, 9.0, (10.7, 10.7, 21.4, 300.0, 12.0), is_baseline=True, lines=0
    ),
    "jax-single": Shape(
        "jax", "one device, JAX", 212.0, 0, 0, 8.0, (10.7, 10.7, 21.4, 290.0, 12.0), 1.4, is_baseline=True, lines=0
    ),
}
FOUR = ("ddp", "fsdp", "pmap", "pjit")
SIX = (*FOUR, "torch-single", "jax-single")


def plan(strategies: tuple[str, ...] = FOUR, *, t0: int = T0, folders: dict[str, str] | None = None) -> Plan:
    runs = [
        PlannedRun(
            strategy=name,
            title=SHAPES[name].title,
            framework=SHAPES[name].framework,
            folder=(folders or {}).get(name, name),
            is_baseline=SHAPES[name].is_baseline,
        )
        for name in strategies
    ]
    return Plan(t0_unix_ns=t0, runs=runs, ranks=RANKS, model="tiny")


def experiment(strategy: str, *, t0: int = T0, steps: int = STEPS) -> Experiment:
    shape = SHAPES[strategy]
    return Experiment(
        t0_unix_ns=t0,
        strategy=strategy,
        title=shape.title,
        framework=shape.framework,
        ranks=1 if shape.is_baseline else RANKS,
        device_kind="cpu",
        model="tiny",
        parallel_lines=shape.lines,
        parameters=2_675_200,
        is_baseline=shape.is_baseline,
        planned_steps=steps,
        global_batch=BATCH,
        sequence_length=128,
        cores=2,
    )


@dataclass(frozen=True)
class Ending:
    """How a strategy ends: ``done`` after all its steps, ``failed`` at ``step``, or "" while it still runs."""

    outcome: str = "done"
    step: int = STEPS


def write(
    folder: Path,
    strategies: tuple[str, ...] = FOUR,
    *,
    started: int | None = None,
    endings: dict[str, Ending] | None = None,
    t0: int = T0,
    steps: int = STEPS,
    is_over: bool = True,
    hostile: str = "",
    folders: dict[str, str] | None = None,
) -> int:
    """Write a comparison of which ``started`` strategies have begun; the unix ns of its last entry."""
    names = folders or {}
    layout.create_plan(folder, plan(strategies, t0=t0, folders=names))
    at = t0 + 1 * S
    for name in strategies[:started]:
        ending = (endings or {}).get(name, Ending(step=steps))
        at = _write_run(folder / names.get(name, name), name, at, ending, steps, hostile) + S // 2
    if is_over:
        own = Journal(folder, "supervisor", t0_unix_ns=t0)
        own.append(Ended(t_ns=at - t0, outcome="done"))
        own.close()
    return at


def _write_run(folder: Path, name: str, t0: int, ending: Ending, steps: int, hostile: str) -> int:
    layout.create(folder, experiment(name, t0=t0, steps=steps))
    entries = sorted(_entries(name, ending, hostile), key=lambda pair: pair[1].t_ns)
    starts = {entry.step: entry.start_ns + t0 for _, entry in entries if isinstance(entry, StepDone)}
    for _, entry in entries:
        if isinstance(entry, TraceWritten):
            _write_trace(folder, name, entry, starts)
    journals = {writer: Journal(folder, writer, t0_unix_ns=t0) for writer in {writer for writer, _ in entries}}
    for writer, entry in entries:
        journals[writer].append(entry)
    for journal in journals.values():
        journal.close()
    return t0 + max(entry.t_ns for _, entry in entries)


def _entries(name: str, ending: Ending, hostile: str) -> Iterator[tuple[str, Entry]]:
    shape = SHAPES[name]
    ranks = 1 if shape.is_baseline else RANKS
    chance = random.Random(name)
    yield "supervisor", Phase(t_ns=1, rank=-1, phase="launching")
    for rank in range(ranks):
        writer = f"rank{rank}" if shape.framework == "torch" else "rank0"
        yield (
            writer,
            RankStarted(
                t_ns=1 * S + rank, rank=rank, device=rank, device_name="CPU", device_kind="cpu", pid=4000 + rank
            ),
        )
    at = 2 * S
    if shape.compile_s:
        yield "rank0", Phase(t_ns=at, rank=0, phase="compiling", detail="train step")
        at += int(shape.compile_s * S)
        compiled = int(shape.compile_s * S)
        yield "rank0", Compiled(t_ns=at, rank=0, name="train_step", stage="compile", duration_ns=compiled)
    writers = [0] if shape.framework == "jax" or shape.is_baseline else list(range(ranks))
    for rank in range(ranks):
        yield _writer(shape, rank), _memory(shape, rank, at)
    yield "rank0", Phase(t_ns=at, rank=0, phase="training")
    at = yield from _training(shape, ending, at, writers, ranks, chance, hostile)
    yield from _sensors(shape, at, ranks, chance)
    yield from _ending(ending, at)


def _training(
    shape: Shape, ending: Ending, at: int, writers: list[int], ranks: int, chance: random.Random, hostile: str
) -> Generator[tuple[str, Entry], None, int]:
    for step in range(ending.step):
        done = list(_step(shape, step, at, writers, chance))
        yield from done
        at = max(entry.end_ns for _, entry in done)
        for low, high in WINDOWS:
            if step == low - 5:
                yield "supervisor", WindowAsked(t_ns=at, first_step=low, end_step=high, reason="cycle")
            if step == high - 1:
                at += 210 * MS
                for rank in range(ranks):
                    yield _writer(shape, rank), _trace(shape, rank, at, low, high)
        if step == 30 and hostile:
            yield "supervisor", Log(t_ns=at, level="warning", text=hostile)
    return at


def _step(
    shape: Shape, step: int, at: int, writers: list[int], chance: random.Random
) -> Iterator[tuple[str, StepDone]]:
    profiled = any(low - 1 <= step < high for low, high in WINDOWS)
    for rank in writers:
        took = shape.step_ms * (1 + chance.gauss(0, 0.02)) * (1.35 if profiled else 1.0) * (3.1 if not step else 1)
        end_ns = at + int(took * MS)
        yield f"rank{rank}", StepDone(
            t_ns=end_ns, rank=rank, step=step, start_ns=at, end_ns=end_ns, tokens=BATCH * 128 // len(writers),
            samples=BATCH // len(writers), loss=7.6 * 0.985**step, data_wait_ns=int(0.4 * MS),
            is_profiled=profiled, is_compiling=False,
        )  # fmt: skip


def _writer(shape: Shape, rank: int) -> str:
    return f"rank{rank}" if shape.framework == "torch" else "rank0"


def _memory(shape: Shape, rank: int, at: int) -> MemoryMeasured:
    names = ("parameters", "gradients", "optimizer", "activations", "temporaries")
    mega = dict(zip(names, shape.memory_mb, strict=True))
    how = dict.fromkeys(names[:3], "exact") | {"activations": "measured", "temporaries": "derived"}
    sizes = {name: int(value * 1e6 * (1 + 0.01 * rank)) for name, value in mega.items()}
    return MemoryMeasured(
        t_ns=at, rank=rank, device=rank, step=1, source="saved tensors", categories=sizes, how=how,
        peak_bytes=sum(sizes.values()), peak_how="sum of what was counted",
    )  # fmt: skip


def _trace(shape: Shape, rank: int, at: int, low: int, high: int) -> TraceWritten:
    return TraceWritten(
        t_ns=at, rank=rank, path=f"traces/rank{rank}-steps{low}-{high}.pt.trace.json.gz", format="kineto",
        first_step=low, end_step=high, size_bytes=1_240_000, start_cost_ns=3 * MS, stop_ns=205 * MS,
    )  # fmt: skip


def _sensors(shape: Shape, end: int, ranks: int, chance: random.Random) -> Iterator[tuple[str, Entry]]:
    yield "sensors", SensorFailed(t_ns=1, device="gpu", field="utilization_frac", why="no NVIDIA driver here")
    at = 0
    while at < end:
        busy = 0.96 if at > 2 * S else 0.3
        host = {"utilization_frac": busy * (1 - 0.1 * chance.random()), "memory_total_bytes": 25.3e9}
        host["memory_used_bytes"] = 2.1e9 + 1.6e9 * min(1.0, at / (4 * S))
        yield "sensors", Sampled(t_ns=at, device="host", values=host)
        for rank in range(ranks):
            size = 371e6 * min(1.0, 0.3 + at / (4 * S)) + rank * 1e6
            values = {"rss_bytes": size, "cpu_cores": 0.5 * busy * (1 - 0.2 * chance.random())}
            yield "sensors", Sampled(t_ns=at + 1, device=f"rank {rank}", values=values)
        at += S // 2


def _ending(ending: Ending, at: int) -> Iterator[tuple[str, Entry]]:
    if ending.outcome == "failed":
        why, lines = "killed by SIGKILL", ("step 4 loss 7.15", "step 5 loss 7.04")
        yield "supervisor", RankEnded(t_ns=at + 20 * MS, rank=2, exit_code=-9, why=why, log_lines=lines)
        yield "supervisor", Ended(t_ns=at + 300 * MS, outcome="failed", why=f"rank 2 was {why} at step 5", rank=2)
    elif ending.outcome:
        yield "supervisor", Ended(t_ns=at + 300 * MS, outcome=ending.outcome)


def _write_trace(folder: Path, name: str, trace: TraceWritten, steps: dict[int, int]) -> None:
    """A small native trace: in each step one operator, then a collective that begins ``hidden`` before its end."""
    shape = SHAPES[name]
    late = 4.0 if trace.rank == 2 else 0.0
    parts = (("all_gather", 0.7), ("reduce_scatter", 0.3)) if shape.lines > 8 else (("all_reduce", 1.0),)
    events = []
    for step in range(trace.first_step, trace.end_step):
        at = steps[step] / 1000
        computed = (shape.compute + shape.hidden + late) * 1000
        events.append(_event("user_annotation", f"ProfilerStep#{step}", 1, at, shape.step_ms * 1000))
        events.append(_event("cpu_op", "aten::mm", 1, at + 1, computed - 1))
        if shape.exposed:
            begun = at + computed - shape.hidden * 1000
            for collective, share in parts:
                took = (shape.hidden + shape.exposed - late) * share * 1000
                events.append(_event("cpu_op", f"gloo:{collective}", 2, begun, took))
                begun += took
        events.append(_event("cpu_op", "aten::add_", 1, at + shape.step_ms * 1000 - 3, 2))
    document = {
        "schemaVersion": 1, "baseTimeNanoseconds": 0, "displayTimeUnit": "ms",
        "distributedInfo": {"backend": "gloo", "rank": trace.rank, "world_size": 1 if shape.is_baseline else RANKS},
        "traceEvents": events,
    }  # fmt: skip
    path = folder / trace.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(document).encode()))


def _event(category: str, name: str, thread: int, at_us: float, took_us: float) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": at_us, "dur": took_us, "args": {}}


def stop(folder: Path, unix_ns: int | None = None) -> None:
    """End a made run that was still going, as a supervisor does that was asked to: then, or right after its newest."""
    for path in [*layout.recordings(folder), folder]:
        head = layout.read_plan(path) if path == folder else layout.read_experiment(path)
        assert head is not None
        newest = max(entry.t_ns for entry in _read(path)) if _read(path) else S
        at_ns = newest + MS if unix_ns is None else unix_ns - head.t0_unix_ns
        journal = Journal(path, "supervisor", t0_unix_ns=head.t0_unix_ns)
        journal.append(Ended(t_ns=at_ns, outcome="stopped"))
        journal.close()


def _read(folder: Path) -> list[Entry]:
    return [entry for path in (folder / layout.JOURNAL).glob("*.jsonl") for entry in Tail(path).read()]


def say(folder: Path, unix_ns: int, text: str) -> None:
    """One more line in the log of a made recording."""
    t0 = layout.read_experiment(folder).t0_unix_ns
    journal = Journal(folder, "late", t0_unix_ns=t0)
    journal.append(Log(t_ns=unix_ns - t0, level="info", text=text))
    journal.close()


def started_unix_ns(folder: Path) -> int:
    return layout.read_experiment(folder).t0_unix_ns
