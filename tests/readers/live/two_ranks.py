"""Two gloo ranks of a known schedule, told by their own clock; run by torchrun, which the test starts.

Rank 0 computes and takes part in one all-reduce; rank 1 comes late, so that the all-reduce lasts about 100 ms.
``overlap``: 50 ms of compute, the call, 70 ms of compute beside it, then the wait.
``await``: 50 ms of compute, the call and its wait, then 70 ms of compute.
``inside``: 50 ms of compute, then an operator that computes, communicates and waits inside itself, as tensor
parallelism does.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.profiler import ProfilerActivity, profile

MATRIX = torch.randn(300, 300)
MESSAGE = torch.ones(1000)


@torch.library.custom_op("two_ranks::row_parallel", mutates_args=())
def row_parallel(x: torch.Tensor) -> torch.Tensor:
    reduced = functional.all_reduce(x @ x, "sum", dist.group.WORLD)
    return functional.wait_tensor(reduced).clone()


def compute(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        MATRIX @ MATRIX


def overlap(told: dict[str, float]) -> None:
    compute(0.05)
    told["called"] = time.perf_counter()
    work = dist.all_reduce(MESSAGE, async_op=True)
    compute(0.07)
    told["computed"] = time.perf_counter()
    work.wait()
    told["done"] = time.perf_counter()


def await_(told: dict[str, float]) -> None:
    compute(0.05)
    told["called"] = told["computed"] = time.perf_counter()
    dist.all_reduce(MESSAGE, async_op=True).wait()
    told["done"] = time.perf_counter()
    compute(0.07)


def inside(told: dict[str, float]) -> None:
    compute(0.05)
    told["called"] = told["computed"] = time.perf_counter()
    row_parallel(MATRIX)
    told["done"] = time.perf_counter()


def late(mode: str) -> None:
    time.sleep(0.15)
    if mode == "inside":
        row_parallel(MATRIX)
    else:
        dist.all_reduce(MESSAGE)


def main(out: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    is_late = dist.get_rank() == 1
    row_parallel(MATRIX)
    for mode, schedule in (("overlap", overlap), ("await", await_), ("inside", inside)):
        told: dict[str, float] = {}
        dist.barrier()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            late(mode) if is_late else schedule(told)
        if not is_late:
            profiler.export_chrome_trace(str(out / f"{mode}.json"))
            (out / f"{mode}.clock.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
