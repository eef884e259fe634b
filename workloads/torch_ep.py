# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.6", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "ep"
# title = "PyTorch expert parallel: each rank holds some experts, tokens go to theirs and back in all-to-alls"
# framework = "torch"
# launch = "torchrun"
# ///
"""Trains a mixture of experts with PyTorch, experts spread over the ranks and everything else replicated.

    torchrun --standalone --nproc_per_node 2 workloads/torch_ep.py --model moe --steps 5

In every block a rank sends each token to the ranks that hold its experts, and gets back what they made of it: four
all-to-alls, there and back, of the forward and the backward pass. They wait for each other and hide under nothing. The
gradients of what is replicated are averaged as under DDP; those of an expert are whole on its rank, since it has seen
every token that was sent to it.
"""

from __future__ import annotations

from contextlib import nullcontext  # parallel
from functools import partial
from typing import Any  # parallel

import torch
import torch.distributed as dist  # parallel
from torch.nn.parallel import DistributedDataParallel  # parallel

from batches import micro_batches
from devices import torch_device, torchrun_ranks  # parallel
from injecting import TorchFaults
from models.torch_models import build, on_device, units
from models.torch_moe import Experts  # parallel
from options import Options, by_hand, check
from watching import Watch


class Exchange(torch.autograd.Function):  # parallel
    """Rows to the ranks and from them, in the order of ranks; gradients go the same way back."""

    @staticmethod  # parallel
    def forward(ctx: Any, rows: torch.Tensor, sent: list[int], received: list[int]) -> torch.Tensor:  # parallel
        ctx.sent, ctx.received = sent, received  # parallel
        arrived = rows.new_empty(sum(received), *rows.shape[1:])  # parallel
        dist.all_to_all_single(arrived, rows.contiguous(), received, sent)  # parallel
        return arrived  # parallel

    @staticmethod  # parallel
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # parallel
        return Exchange.apply(gradient, ctx.received, ctx.sent), None, None  # parallel


class SpreadExperts(torch.nn.Module):  # parallel
    """A rank's share of the experts, which has the rows of all ranks that were sent to them."""

    def __init__(self, whole: Experts, rank: int, ranks: int) -> None:  # parallel
        super().__init__()  # parallel
        self.ranks, self.share = ranks, len(whole.up) // ranks  # parallel
        for name, parameter in whole.named_parameters():  # parallel
            own = parameter.detach().split(self.share)[rank].clone()  # parallel
            setattr(whole, name, torch.nn.Parameter(own))  # parallel
        self.experts = whole  # parallel

    def forward(self, rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:  # parallel
        arriving = torch.empty_like(counts)  # parallel
        dist.all_to_all_single(arriving, counts)  # parallel
        of_ranks = (of.view(self.ranks, -1).sum(1).tolist() for of in (counts, arriving))  # parallel
        sent, received = of_ranks  # parallel
        arrived = Exchange.apply(rows, sent, received)  # parallel
        # They come in the order of ranks, and of experts within: the experts take them in their own.
        numbers = torch.arange(self.share, device=rows.device).repeat(self.ranks)  # parallel
        order = numbers.repeat_interleave(arriving).argsort(stable=True)  # parallel
        made = self.experts(arrived[order], arriving.view(self.ranks, -1).sum(0))  # parallel
        return Exchange.apply(made[order.argsort()], received, sent)  # parallel


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step: the mean over this rank's slice of the batch."""
    rank, local_rank, ranks = torchrun_ranks()  # parallel
    check(options, ranks, "ep")  # parallel
    device = torch_device(options, local_rank)  # parallel
    dist.init_process_group(dist.get_default_backend_for_device(device))  # parallel

    torch.manual_seed(options.seed)
    with device:
        model = build(options)
    # Every rank has drawn all experts, so that losses equal those of a single device; each now keeps its own.
    for block in model.blocks:  # parallel
        block.mixture.experts = SpreadExperts(block.mixture.experts, rank, ranks)  # parallel
    if options.compile:
        for unit in units(model, options):
            unit.compile()
    spread = {name: p for name, p in model.named_parameters() if ".mixture.experts." in name}  # parallel
    for parameter in spread.values():  # parallel
        # The loss is a mean over ranks, of which each sends gradients of its own mean.
        parameter.register_hook(lambda gradient: gradient / ranks)  # parallel
    # Each rank drops out features of its own.
    torch.manual_seed(options.seed + rank)  # parallel
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, list(spread))  # parallel
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
