# /// script
# dependencies = ["torch"]
#
# [[tool.meshscope.strategy]]
# name = "toy"
# title = "A linear layer under DDP"
# framework = "torch"
# launch = "torchrun"
#
# [[tool.meshscope.strategy]]
# name = "toy-single"
# title = "The same as the only rank"
# framework = "torch"
# launch = "torchrun"
# max_ranks = 1
# baseline = true
# ///
"""A linear layer under DDP, at a settable pace, that can be made to fail on one rank."""

from __future__ import annotations

import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from options import Options, fail_as_asked


def train(options: Options, watch) -> list[float]:
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")  # parallel
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(options.width, options.width, bias=False))  # parallel
    optimizer = torch.optim.AdamW(model.parameters())
    watch.started(parameters=lambda: model, optimizer=lambda: optimizer)
    print(f"rank {rank} of {ranks} trains", flush=True)
    losses = []
    for step in range(options.steps):
        with watch.step(step):
            fail_as_asked(options, rank, step)
            batch = watch.batch(lambda: torch.ones(options.batch // ranks, options.width))
            time.sleep(options.pace_ms / 1000)
            optimizer.zero_grad()
            loss = model(batch).tanh().square().mean()
            loss.backward()
            optimizer.step()
            losses.append(watch.loss(loss))
    watch.finished()
    dist.destroy_process_group()
    return losses
