"""Three gloo ranks, of which the second never comes to the third all-reduce; each dumps its flight recorder."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def main(rank: int, out: Path) -> None:
    store = dist.FileStore(str(out / "store"), 3)
    dist.init_process_group("gloo", rank=rank, world_size=3, store=store, timeout=timedelta(seconds=60))
    tensor = torch.ones(1000)
    for _ in range(2):
        dist.all_reduce(tensor)
    if rank != 1:
        dist.all_reduce(tensor, async_op=True)
    time.sleep(2)
    recorder = torch._C._distributed_c10d
    (out / f"nccl_trace_rank_{rank}").write_bytes(recorder._dump_fr_trace())
    told = recorder._dump_fr_trace_json()
    (out / f"fr_trace_rank_{rank}.json").write_bytes(told if isinstance(told, bytes) else told.encode())
    (out / f"done{rank}").touch()
    while not all((out / f"done{other}").exists() for other in range(3)):
        time.sleep(0.1)
    os._exit(0)  # the all-reduce cannot end


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
