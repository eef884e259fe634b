# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.6", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "ddp"
# title = "PyTorch DDP: a full replica per rank, gradients all-reduced in buckets"
# framework = "torch"
# launch = "torchrun"
# ///
"""Trains a model with PyTorch DDP: every rank holds the whole model, and gradients are averaged.

    torchrun --standalone --nproc_per_node 2 workloads/torch_ddp.py --model tiny --steps 5

Every rank draws the same weights from the seed. DDP gathers gradients into buckets as the backward pass makes them,
and sends each bucket on its way while the rest of the backward pass runs. Buckets may be compressed on their way
(``--compress``): then fewer bytes are sent, and losses are no longer those of a single device.
"""

from __future__ import annotations

from contextlib import nullcontext  # parallel
from functools import partial

import torch
import torch.distributed as dist  # parallel
from torch.nn.parallel import DistributedDataParallel  # parallel

from batches import micro_batches
from compression import compress  # parallel
from devices import torch_device, torchrun_ranks  # parallel
from injecting import TorchFaults
from models.torch_models import build, on_device, units
from options import Options, by_hand, check
from watching import Watch


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step: the mean over this rank's slice of the batch."""
    rank, local_rank, ranks = torchrun_ranks()  # parallel
    check(options, ranks, "ddp")  # parallel
    device = torch_device(options, local_rank)  # parallel
    dist.init_process_group(dist.get_default_backend_for_device(device))  # parallel

    torch.manual_seed(options.seed)
    with device:
        model = build(options)
    if options.compile:
        for unit in units(model, options):
            unit.compile()
    # Each rank drops out features of its own.
    torch.manual_seed(options.seed + rank)  # parallel
    buckets = {"bucket_cap_mb": options.bucket_mb, "gradient_as_bucket_view": options.bucket_view}  # parallel
    model = DistributedDataParallel(model, static_graph=options.static_graph, **buckets)  # parallel
    compress(model, options)  # parallel
    fused = device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=fused)
    faults = TorchFaults(options, model, device)

    def fetch(step: int) -> tuple[torch.Tensor, ...]:
        batch = micro_batches(options, step, rank, ranks)  # parallel
        return on_device(batch, device)

    def accumulate_gradients(batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        loss = torch.zeros((), device=device)
        for number, micro_batch in enumerate(zip(*batch, strict=True), start=1):  # parallel
            # Gradients are averaged once per step, with the last micro-batch.
            is_last = number == options.accumulate  # parallel
            with nullcontext() if is_last or options.sync_every_micro_batch else model.no_sync():  # parallel
                with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bf16"):
                    part = model(*micro_batch) / options.accumulate
                part.backward()
            loss += part.detach()
        return loss

    if options.compile:
        with watch.compiling("the blocks"):
            accumulate_gradients(fetch(0))
        optimizer.zero_grad()
    watch.started(parameters=lambda: model, optimizer=lambda: optimizer)

    losses = []
    for step in range(options.steps):
        with watch.step(step):
            batch = watch.batch(partial(fetch, step))
            faults.strike(step)
            loss = accumulate_gradients(batch)
            optimizer.step()
            losses.append(watch.loss(loss))
        optimizer.zero_grad()
    watch.finished()
    dist.destroy_process_group()  # parallel
    return losses


if __name__ == "__main__":
    by_hand(train, Watch())
