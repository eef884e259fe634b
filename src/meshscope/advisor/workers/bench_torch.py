"""``python -m meshscope.advisor.workers.bench_torch RANKS THREADS SECONDS``: one JSON line of what torch reaches here.

All ranks measure at the same time, as they would train: on a CPU they share the memory and the caches, on GPUs the
power. A figure is the median over repeats on the slowest rank. Collectives go over gloo on a CPU and NCCL on GPUs; with
one rank there are none. Sizes of collectives are nccl-tests': that of the whole tensor (github.com/NVIDIA/nccl-tests,
doc/PERFORMANCE.md).
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, multiprocessing
from torch.nn import functional

from meshscope.advisor.workers.bench_plan import ATTENTION, COLLECTIVES, COPY_BYTES, MATMULS, Plan, plan
from meshscope.capture import lifeline

_PATIENCE = timedelta(seconds=60)
_DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_FEWEST, _MOST = 3, 200


def timed(work: Callable[[], object], device: torch.device, budget_s: float) -> float:
    """Seconds of one call: the median of as many as fit into the budget, after one that warms up."""
    work()
    took: list[float] = []
    deadline = time.perf_counter() + budget_s
    while len(took) < _FEWEST or (time.perf_counter() < deadline and len(took) < _MOST):
        _settle(device)
        begun = time.perf_counter()
        work()
        _settle(device)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def matmuls(device: torch.device, asked: Plan) -> list[dict[str, Any]]:
    """Seconds of products of ``m × k`` and ``k × n``, by compute type."""
    found = []
    for compute in asked.computes:
        torch.backends.cuda.matmul.allow_tf32 = compute == "tf32"
        for m, n, k in MATMULS[asked.size]:
            left, right = (torch.randn(shape, device=device).to(_DTYPES[compute]) for shape in ((m, k), (k, n)))
            seconds = timed(lambda left=left, right=right: left @ right, device, asked.each_s)  # type: ignore[misc]
            found.append({"compute": compute, "m": m, "n": n, "k": k, "seconds": seconds})
    return found


def attentions(device: torch.device, asked: Plan) -> list[dict[str, Any]]:
    """Seconds of causal attention forward, by compute type."""
    found = []
    for compute in asked.computes:
        for samples, heads, tokens, width in ATTENTION[asked.size]:
            q = torch.randn(samples, heads, tokens, width, device=device).to(_DTYPES[compute])
            work = lambda q=q: functional.scaled_dot_product_attention(q, q, q, is_causal=True)  # noqa: E731
            shape = {"samples": samples, "heads": heads, "tokens": tokens, "width": width}
            found.append({"compute": compute, **shape, "seconds": timed(work, device, asked.each_s)})
    return found


def copies(device: torch.device, asked: Plan) -> list[dict[str, Any]]:
    """Seconds to copy a tensor; ``moved_bytes`` are read and written."""
    found = []
    for size_bytes in COPY_BYTES[asked.size]:
        source = torch.randn(size_bytes // 4, device=device)
        target = torch.empty_like(source)
        seconds = timed(lambda s=source, t=target: t.copy_(s), device, asked.each_s)  # type: ignore[misc]
        found.append({"moved_bytes": 2 * size_bytes, "seconds": seconds})
    return found


def launch_s(device: torch.device, asked: Plan) -> float:
    """What one operator costs however small its tensor is: of many in a row, since a GPU runs behind the host."""
    number, many = torch.ones(1, device=device), 100

    def work() -> None:
        for _ in range(many):
            number.add_(1)

    return timed(work, device, asked.each_s) / many


def collectives(device: torch.device, asked: Plan) -> list[dict[str, Any]]:
    """Seconds of each collective, by size."""
    ranks = dist.get_world_size()
    found = []
    for kind, work_of in _COLLECTIVES.items():
        for size_bytes in COLLECTIVES[asked.size]:
            whole = torch.ones(size_bytes // 4 // ranks * ranks, device=device)
            work = work_of(whole, whole[: len(whole) // ranks].clone())
            dist.barrier()
            seconds = timed_together(work, device, asked.each_s)
            found.append({"kind": kind, "ranks": ranks, "size_bytes": whole.nbytes, "seconds": seconds})
    return found


def timed_together(work: Callable[[], object], device: torch.device, budget_s: float) -> float:
    """As :func:`timed`, the same number of times on all ranks: the first rank says when the budget is used up."""
    work()
    begun = time.perf_counter()
    work()
    _settle(device)
    one_s = max(time.perf_counter() - begun, 1e-7)
    times = torch.tensor([min(max(int(budget_s / one_s), _FEWEST), _MOST)], device=device)
    dist.broadcast(times, src=0)
    took: list[float] = []
    for _ in range(int(times)):
        _settle(device)
        begun = time.perf_counter()
        work()
        _settle(device)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def _all_reduce(whole: Tensor, part: Tensor) -> Callable[[], object]:
    del part
    return lambda: dist.all_reduce(whole)


def _all_gather(whole: Tensor, part: Tensor) -> Callable[[], object]:
    return lambda: dist.all_gather_into_tensor(whole, part)


def _reduce_scatter(whole: Tensor, part: Tensor) -> Callable[[], object]:
    return lambda: dist.reduce_scatter_tensor(part, whole)


def _send(whole: Tensor, part: Tensor) -> Callable[[], object]:
    del part
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if rank > 1:
        return lambda: None
    return (lambda: dist.send(whole, 1 % ranks)) if rank == 0 else (lambda: dist.recv(whole, 0))


_COLLECTIVES = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "send": _send,
}


def measured(device: torch.device, asked: Plan) -> dict[str, Any]:
    """Everything, in the order of how much it matters."""
    with torch.inference_mode():
        found: dict[str, Any] = {
            "matmul": matmuls(device, asked),
            "copy": copies(device, asked),
            "attention": attentions(device, asked),
            "launch_s": launch_s(device, asked),
        }
        found["collective"] = collectives(device, asked) if asked.ranks > 1 else []
    return found


def rank_main(rank: int, asked: Plan, folder: str, parent: int) -> None:
    """One rank: what it measured is in ``folder``."""
    lifeline.tie_to(parent)
    os.environ.setdefault("OMP_NUM_THREADS", str(asked.threads))
    torch.set_num_threads(asked.threads)
    device = torch.device("cuda", rank) if asked.size == "gpu" else torch.device("cpu")
    if asked.ranks > 1:
        backend = "nccl" if device.type == "cuda" else "gloo"
        store = dist.FileStore(str(Path(folder) / "store"), asked.ranks)
        dist.init_process_group(backend, store=store, rank=rank, world_size=asked.ranks, timeout=_PATIENCE)
    found = measured(device, asked)
    (Path(folder) / f"{rank}.json").write_text(json.dumps(found))
    if asked.ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


def slowest(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Of several ranks as one: each time is that of the rank that took longest."""
    first = dict(found[0])
    first["launch_s"] = max(rank["launch_s"] for rank in found)
    for name in ("matmul", "copy", "attention", "collective"):
        rows = zip(*(rank[name] for rank in found), strict=True)
        first[name] = [{**row[0], "seconds": max(one["seconds"] for one in row)} for row in rows]
    return first


def about(size: str) -> dict[str, Any]:
    """What the device is called and how much memory it has; of a CPU the caller knows better."""
    if size == "gpu":
        properties = torch.cuda.get_device_properties(0)
        return {"device": properties.name, "memory_bytes": properties.total_memory, "version": torch.__version__}
    return {"device": "", "memory_bytes": 0, "version": torch.__version__}


def main() -> int:
    ranks, threads, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    size = "gpu" if torch.cuda.is_available() else "cpu"
    if size == "gpu":
        ranks = min(ranks, torch.cuda.device_count())
    asked = plan(size, ranks, threads, seconds)
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(rank_main, (asked, folder, os.getpid()), nprocs=ranks)
        found = [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(ranks)]
    print(json.dumps({**about(size), "ranks": ranks, "threads": threads, "platform": size, **slowest(found)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
