# /// script
# dependencies = ["torch"]
#
# [[tool.meshscope.strategy]]
# name = "compiled-toy"
# title = "A linear layer under torch.compile and DDP"
# framework = "torch"
# launch = "torchrun"
# ///
"""A compiled layer under DDP whose batch has another size at step 5, and whose way of scaling is another at 7 and 8.

The backend needs no C compiler. The second size makes the dimension a dynamic one, which takes any size after that;
a text is a constant to TorchDynamo, each one a program of its own.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from options import Options

WAYS = {7: "double", 8: "triple"}
SCALES = {"plain": 1, "double": 2, "triple": 3}


class Scaled(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width, bias=False)

    def forward(self, tokens, way):
        return (self.linear(tokens) * SCALES[way]).square().mean()


def train(options: Options, watch) -> list[float]:
    ranks = int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = Scaled(options.width)
    model.compile(backend="aot_eager")
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch.started(parameters=lambda: model, optimizer=lambda: optimizer)
    losses = []
    for step in range(options.steps):
        with watch.step(step):
            rows = options.batch // ranks - (step == 5)
            batch = watch.batch(lambda: torch.ones(rows, options.width))  # noqa: B023  # called at once
            loss = model(batch, WAYS.get(step, "plain"))
            loss.backward()
            optimizer.step()
            losses.append(watch.loss(loss))
        optimizer.zero_grad()
    watch.finished()
    dist.destroy_process_group()
    return losses
