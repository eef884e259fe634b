# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.6", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "fsdp1"
# title = "PyTorch FSDP1: as FSDP2, by the older wrapper, which lays a block's parameters end to end in one"
# framework = "torch"
# launch = "torchrun"
# ///
"""Trains a model with PyTorch FSDP1, FullyShardedDataParallel: a rank holds a shard of each flat parameter.

    torchrun --standalone --nproc_per_node 2 workloads/torch_fsdp1.py --model tiny --steps 5

The parameters of a block are laid end to end, and a rank holds a piece of the whole. Before the block runs it is
all-gathered, and after its backward pass its gradient is averaged and scattered. What no block holds is the outermost
wrapper's own, and stays gathered from the forward to the backward pass.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.distributed as dist  # parallel
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy  # parallel
from torch.distributed.fsdp.wrap import CustomPolicy  # parallel

from batches import micro_batches
from devices import torch_device, torchrun_ranks  # parallel
from injecting import TorchFaults
from models.torch_models import build, on_device, units
from options import Options, by_hand, check
from watching import Watch


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step: the mean over this rank's slice of the batch."""
    rank, local_rank, ranks = torchrun_ranks()  # parallel
    check(options, ranks, "fsdp1")  # parallel
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
    bf16 = torch.bfloat16 if options.precision == "bf16" else None  # parallel
    mixed = MixedPrecision(param_dtype=bf16, reduce_dtype=torch.float32)  # parallel
    sharding = ShardingStrategy.FULL_SHARD if options.reshard else ShardingStrategy.SHARD_GRAD_OP  # parallel
    # Every rank has drawn the whole model, so that losses equal those of DDP; each now keeps its shard.
    gathered = set(units(model, options))  # parallel
    model = FullyShardedDataParallel(  # parallel
        model,  # parallel
        sharding_strategy=sharding,  # parallel
        auto_wrap_policy=CustomPolicy(gathered.__contains__),  # parallel
        mixed_precision=mixed,  # parallel
        device_id=device,  # parallel
        use_orig_params=True,  # parallel
    )  # parallel
    fused = device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=fused)
    faults = TorchFaults(options, model, device)

    def fetch(step: int) -> tuple[torch.Tensor, ...]:
        batch = micro_batches(options, step, rank, ranks)  # parallel
        return on_device(batch, device)

    def accumulate_gradients(batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        loss = torch.zeros((), device=device)
        for micro_batch in zip(*batch, strict=True):
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
