# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.6", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "cp"
# title = "PyTorch context parallel: every sequence split over all ranks, keys and values gathered in each layer"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 2
# arguments = ["--spec", "cp"]
# ///
"""Trains the transformer with context parallelism: ranks share each sequence, for sequences too long for one device.

    torchrun --standalone --nproc_per_node 2 workloads/torch_cp.py --model tiny --steps 5

A rank has two pieces of each sample, one from either end: late tokens look at more of those before them than early ones
do, and so all ranks have as much to attend to. Queries stay where they are; keys and values of all tokens are gathered
in each layer, and their gradients added up and scattered (as in Llama 3, https://arxiv.org/abs/2407.21783, 3.3.2). All
else works on each token alone. Gradients of parameters are averaged by DDP. Torch's own ``context_parallel`` passes
keys around in a ring; it has no kernels for CPUs.
"""

from __future__ import annotations

from contextlib import nullcontext  # parallel
from functools import partial

import torch
import torch.distributed as dist  # parallel
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh  # parallel
from torch.distributed.tensor import DTensor, Partial, Shard  # parallel
from torch.nn.functional import scaled_dot_product_attention  # parallel
from torch.nn.parallel import DistributedDataParallel  # parallel

from batches import micro_batches
from degrees import settled  # parallel
from devices import torch_device, torchrun_ranks  # parallel
from injecting import TorchFaults
from models.torch_models import build, on_device, units
from options import Options, by_hand, check
from watching import Watch


class GatheredAttention:  # parallel
    """Causal attention of this rank's tokens to those of all ranks."""

    def __init__(self, places: list[torch.Tensor], mesh: DeviceMesh) -> None:  # parallel
        self.mesh = mesh  # parallel
        self.is_seen = places[mesh.get_local_rank()][:, None] >= torch.cat(places)[None, :]  # parallel

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:  # parallel
        own = DTensor.from_local(torch.stack((k, v)), self.mesh, [Shard(3)], run_check=False)  # parallel
        # Every rank has a gradient for the keys and values of all: they are added up where they belong.
        k, v = own.full_tensor(grad_placements=[Partial()])  # parallel
        return scaled_dot_product_attention(q, k, v, attn_mask=self.is_seen)  # parallel


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step: the mean over this rank's tokens of the batch."""
    rank, local_rank, ranks = torchrun_ranks()  # parallel
    options = settled(options, ranks, spec="cp")  # parallel
    check(options, ranks, "cp")  # parallel
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
    mesh = init_device_mesh(device.type, (ranks,), mesh_dim_names=("context",))  # parallel
    pieces = torch.arange(options.seq, device=device).chunk(2 * ranks)  # parallel
    places = [torch.cat((pieces[own], pieces[-1 - own])) for own in range(ranks)]  # parallel
    for block in model.blocks:  # parallel
        block.attention.attend = GatheredAttention(places, mesh)  # parallel
    model = DistributedDataParallel(model, bucket_cap_mb=options.bucket_mb, gradient_as_bucket_view=True)  # parallel
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
            with nullcontext() if number == options.accumulate else model.no_sync():  # parallel
                with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bf16"):
                    part = model(*micro_batch, places[rank]) / options.accumulate  # parallel
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
