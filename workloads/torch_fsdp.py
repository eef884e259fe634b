# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.6", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "fsdp"
# title = "PyTorch FSDP2: parameters, gradients and optimizer state sharded over ranks, gathered block by block"
# framework = "torch"
# launch = "torchrun"
#
# [[tool.meshscope.strategy]]
# name = "hsdp"
# title = "PyTorch HSDP: sharded within a group of ranks, replicated over two groups"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 4
# arguments = ["--replicas", "2"]
# ///
"""Trains a model with PyTorch FSDP2: a rank holds a shard of each parameter, and gathers them block by block.

    torchrun --standalone --nproc_per_node 2 workloads/torch_fsdp.py --model tiny --steps 5
    torchrun --standalone --nproc_per_node 4 workloads/torch_fsdp.py --model tiny --steps 5 --replicas 2

Before a block runs, its parameters are all-gathered (the next block's meanwhile); after its backward pass, its
gradients are averaged and scattered, so that every rank keeps those of its own shard and updates that. With replicas
each group of ranks holds the whole model once, and groups all-reduce the gradients of their shards.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.distributed as dist  # parallel
from torch.distributed.device_mesh import init_device_mesh  # parallel
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # parallel

from batches import micro_batches
from devices import torch_device, torchrun_ranks  # parallel
from injecting import TorchFaults
from models.torch_models import build, on_device, units
from options import Options, by_hand, check
from watching import Watch


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step: the mean over this rank's slice of the batch."""
    rank, local_rank, ranks = torchrun_ranks()  # parallel
    check(options, ranks, "hsdp" if options.replicas > 1 else "fsdp")  # parallel
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
    shape = (options.replicas, ranks // options.replicas) if options.replicas > 1 else (ranks,)  # parallel
    names = ("replicate", "shard")[-len(shape) :]  # parallel
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=names)  # parallel
    bf16 = torch.bfloat16 if options.precision == "bf16" else None  # parallel
    policy = MixedPrecisionPolicy(param_dtype=bf16, reduce_dtype=torch.float32)  # parallel
    # Every rank has drawn the whole model, so that losses equal those of DDP; each now keeps its shard.
    for unit in units(model, options):  # parallel
        fully_shard(unit, mesh=mesh, mp_policy=policy, reshard_after_forward=options.reshard)  # parallel
    # What no unit holds is needed from the start of the backward pass on, so it stays gathered.
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)  # parallel
    blocks = units(model, options)  # parallel
    for place, unit in enumerate(blocks if options.prefetch > 1 else ()):  # parallel
        unit.set_modules_to_forward_prefetch(blocks[place + 1 : place + 1 + options.prefetch])  # parallel
        unit.set_modules_to_backward_prefetch(blocks[max(place - options.prefetch, 0) : place][::-1])  # parallel
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
