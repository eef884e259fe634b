# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.6", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "torch-single"
# title = "PyTorch on one device: where everybody starts, and what scaling is measured against"
# framework = "torch"
# launch = "torchrun"
# max_ranks = 1
# baseline = true
# ///
"""Trains a model with PyTorch on one device.

python workloads/torch_single.py --model tiny --steps 5
"""

from __future__ import annotations

from functools import partial

import torch

from batches import micro_batches
from devices import torch_device
from injecting import TorchFaults
from models.torch_models import build, on_device, units
from options import Options, by_hand, check
from watching import Watch


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step."""
    check(options, ranks=1, strategy="torch-single")
    device = torch_device(options)

    torch.manual_seed(options.seed)
    with device:
        model = build(options)
    if options.compile:
        for unit in units(model, options):
            unit.compile()
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
    return losses


if __name__ == "__main__":
    by_hand(train, Watch())
