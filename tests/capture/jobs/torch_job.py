"""A DDP job as the tutorial has it, which knows nothing of meshscope. It prints the time of every step.

    torchrun --standalone --nproc-per-node 2 torch_job.py

Shape: https://pytorch.org/tutorials/intermediate/ddp_tutorial.html
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=90, help="the longest that it trains")
    parser.add_argument("--until", default="", help="a file: once it is there, the job ends")
    parser.add_argument("--hang-at", type=int, default=-1, help="a step before which the last rank stands still")
    parser.add_argument("--worker-server", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if asked.worker_server:
        from torch._C._distributed_c10d import _WorkerServer
        from torch.distributed.debug import _handlers  # which registers them

        server = _WorkerServer("127.0.0.1", 0)
        assert _handlers
        print(f"rank {rank} serves on {server.port}", flush=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    loss_of = nn.MSELoss()
    ends = time.monotonic() + asked.seconds
    step, is_over = 0, torch.zeros(1)
    while not is_over.item():
        started = time.perf_counter()
        if step == asked.hang_at and rank == dist.get_world_size() - 1:
            wait_for_data()
        optimizer.zero_grad()
        loss = loss_of(ddp(torch.randn(512, 256)), torch.randn(512, 10))
        loss.backward()
        optimizer.step()
        # All ranks stop after the same step.
        is_over = torch.tensor([float(time.monotonic() > ends or os.path.exists(asked.until))])
        dist.broadcast(is_over, 0)
        if rank == 0:
            took_ms = (time.perf_counter() - started) * 1000
            print(f"step {step} loss {loss.item():.4f} at {time.time():.6f} took {took_ms:.3f} ms", flush=True)
        step += 1
    dist.destroy_process_group()
    print(f"rank {rank} of {os.environ['WORLD_SIZE']} has trained {step} steps", flush=True)


def wait_for_data() -> None:
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
