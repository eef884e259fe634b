# /// script
# dependencies = ["torch"]
#
# [[tool.meshscope.strategy]]
# name = "overlapped"
# title = "A collective beside compute, awaited when the compute is done"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 2
# max_ranks = 2
# arguments = ["--case", "overlapped"]
#
# [[tool.meshscope.strategy]]
# name = "awaited"
# title = "The same collective, awaited at once"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 2
# max_ranks = 2
# arguments = ["--case", "awaited"]
#
# [[tool.meshscope.strategy]]
# name = "inside"
# title = "A collective awaited inside an op, as tensor-parallel layers do"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 2
# max_ranks = 2
# arguments = ["--case", "inside"]
# ///
"""Two ranks on a known schedule: 120 ms of compute, and a collective of 100 ms that starts 50 ms into it.

Rank 0 is the one to look at. It computes by its own clock and enters an all-reduce at 50 ms; rank 1 enters it 100 ms
later, so that it lasts that long whatever the machine is busy with. Rank 0 writes down when it really computed and
when the collective really began and ended, by its own clock: that is what a reader of the trace has to find.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

from options import Options

MS = 1_000_000
A = torch.rand(160, 160) / 160
B = torch.rand(160, 160)
OUT = torch.empty(160, 160)


@dataclass
class Schedule:
    """Unix ns, by rank 0's own clock: (start, end) of each stretch of compute and of the collective, per step."""

    steps: dict[int, dict[str, list[list[int]]]] = field(default_factory=dict)

    def note(self, step: int, kind: str, start_ns: int, end_ns: int) -> None:
        self.steps.setdefault(step, {"compute": [], "collective": []})[kind].append([start_ns, end_ns])


def compute(until_ns: int) -> tuple[int, int]:
    """Small matrix products until the clock says so; at least one. When it began and ended."""
    start_ns = time.time_ns()
    torch.mm(A, B, out=OUT)
    while time.time_ns() < until_ns:
        torch.mm(A, B, out=OUT)
    return start_ns, time.time_ns()


def overlapped(options: Options, schedule: Schedule, step: int) -> None:
    start_ns = time.time_ns()
    compute(start_ns + options.launch_ms * MS)
    began_ns = time.time_ns()
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    _, end_ns = compute(start_ns + options.compute_ms * MS)
    work.wait()
    schedule.note(step, "compute", start_ns, end_ns)
    schedule.note(step, "collective", began_ns, time.time_ns())


def awaited(options: Options, schedule: Schedule, step: int) -> None:
    start_ns = time.time_ns()
    schedule.note(step, "compute", *compute(start_ns + options.launch_ms * MS))
    began_ns = time.time_ns()
    dist.all_reduce(torch.ones(1000))
    ended_ns = time.time_ns()
    schedule.note(step, "collective", began_ns, ended_ns)
    schedule.note(step, "compute", *compute(ended_ns + (options.compute_ms - options.launch_ms) * MS))


def inside(options: Options, schedule: Schedule, step: int) -> None:
    """The sum opens before its argument has arrived: the wait is nested in a compute op."""
    start_ns = time.time_ns()
    schedule.note(step, "compute", *compute(start_ns + options.launch_ms * MS))
    began_ns = time.time_ns()
    partial = functional.all_reduce(torch.ones(1000), "sum", dist.group.WORLD)
    partial.sum()
    ended_ns = time.time_ns()
    schedule.note(step, "collective", began_ns, ended_ns)
    schedule.note(step, "compute", *compute(ended_ns + (options.compute_ms - options.launch_ms) * MS))


def late(options: Options) -> None:
    """Rank 1: there for the collective when it has lasted as long as it should."""
    time.sleep((options.launch_ms + options.collective_ms) / 1000)
    dist.all_reduce(torch.ones(1000))


def late_inside(options: Options) -> None:
    time.sleep((options.launch_ms + options.collective_ms) / 1000)
    functional.all_reduce(torch.ones(1000), "sum", dist.group.WORLD).sum()


CASES = {"overlapped": (overlapped, late), "awaited": (awaited, late), "inside": (inside, late_inside)}


def go_first() -> None:
    """A busy machine would let gloo's thread begin late; threads made from here on inherit the priority, if allowed."""
    with contextlib.suppress(PermissionError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def train(options: Options, watch) -> list[float]:
    go_first()
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    first, second = CASES[options.case]
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters())
    watch.started(parameters=lambda: model, optimizer=lambda: optimizer)
    schedule = Schedule()
    beginning = [time.time_ns() + 300 * MS]
    dist.broadcast_object_list(beginning)
    for step in range(options.steps):
        # Ranks meet by the clock, not by a barrier: that would be a collective too.
        start_ns = beginning[0] + step * options.period_ms * MS
        time.sleep(max(0, start_ns - time.time_ns()) / 1e9)
        with watch.step(step):
            if rank == 0:
                first(options, schedule, step)
            else:
                second(options)
            watch.loss(0.0)
    watch.finished()
    dist.destroy_process_group()
    if rank == 0 and options.schedule:
        Path(f"{options.schedule}-{options.case}.json").write_text(json.dumps(schedule.steps))
    return []
