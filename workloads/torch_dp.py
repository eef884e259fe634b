# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.6", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "dp"
# title = "PyTorch DataParallel: one process drives every GPU, and copies the model to them in each step"
# framework = "torch"
# launch = "torchrun"
# max_ranks = 1
# needs_gpu = true
# ///
"""Trains a model with PyTorch DataParallel, the oldest way: one process, and a thread per GPU.

python workloads/torch_dp.py --model tiny --steps 5

In every step the first GPU sends its parameters to all others, each computes the loss of its slice of the batch, and
gradients are added up on the first one, which alone holds the optimizer. CUDA_VISIBLE_DEVICES says which GPUs.
"""

from __future__ import annotations

from functools import partial

import torch
from torch.nn import DataParallel  # parallel

from batches import micro_batches
from devices import several_gpus, torch_device  # parallel
from injecting import TorchFaults
from models.torch_models import build, on_device, units
from options import Options, by_hand, check
from watching import Watch


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step."""
    check(options, several_gpus(options), strategy="dp")  # parallel
    device = torch_device(options)

    torch.manual_seed(options.seed)
    with device:
        model = build(options)
    if options.compile:
        for unit in units(model, options):
            unit.compile()
    model = DataParallel(model)  # parallel
    fused = device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=fused)
    faults = TorchFaults(options, model, device)

    def fetch(step: int) -> tuple[torch.Tensor, ...]:
        batch = micro_batches(options, step)
        return on_device(batch, device)

    def accumulate_gradients(batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        loss = torch.zeros((), device=device)
        for micro_batch in zip(*batch, strict=True):
            with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bf16"):
                part = model(*micro_batch).mean() / options.accumulate  # parallel
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
    return losses


if __name__ == "__main__":
    by_hand(train, Watch())
