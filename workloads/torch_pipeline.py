# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.6", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "pp-gpipe"
# title = "PyTorch pipeline, GPipe: a stage of blocks per rank, all micro-batches forward, then all backward"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 2
# arguments = ["--schedule", "gpipe", "--accumulate", "8"]
#
# [[tool.meshscope.strategy]]
# name = "pp-1f1b"
# title = "PyTorch pipeline, 1F1B: a stage of blocks per rank, one micro-batch forward, one backward"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 2
# arguments = ["--schedule", "1f1b", "--accumulate", "8"]
#
# [[tool.meshscope.strategy]]
# name = "pp-interleaved"
# title = "PyTorch pipeline, interleaved 1F1B: two stretches of blocks per rank, which makes the bubble half as long"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 2
# arguments = ["--schedule", "interleaved", "--accumulate", "8"]
# ///
"""Trains the transformer as a PyTorch pipeline: a rank holds a stretch of its blocks and passes activations on.

    torchrun --standalone --nproc_per_node 2 workloads/torch_pipeline.py --steps 5 --schedule 1f1b --accumulate 8

All ranks are stages of one pipeline. The micro-batches of a step follow one another through it, their gradients come
back the same way, and what a stage waits for at both ends of a step is the bubble. The embedding, also the output
layer, is held by the first and the last rank, which add up its gradients after the last micro-batch, as Megatron-LM
does. Only the last rank computes a loss.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.distributed as dist  # parallel
from torch import Tensor, nn  # parallel
from torch.distributed import pipelining  # parallel
from torch.nn import functional  # parallel
from torch.utils.checkpoint import checkpoint  # parallel

from batches import micro_batches
from devices import torch_device, torchrun_ranks  # parallel
from injecting import TorchFaults
from models.torch_models import build, on_device, units
from models.torch_transformer import Transformer  # parallel
from options import Options, by_hand, check, settled  # parallel
from pipelines import stretches  # parallel
from watching import Watch

SCHEDULES = {  # parallel
    "gpipe": pipelining.ScheduleGPipe,  # parallel
    "1f1b": pipelining.Schedule1F1B,  # parallel
    "interleaved": pipelining.ScheduleInterleaved1F1B,  # parallel
}  # parallel


class Stretch(nn.Module):  # parallel
    """Some of a transformer's blocks in a row; the first stretch has the embedding too, the last one what follows."""

    def __init__(self, model: Transformer, options: Options, number: int) -> None:  # parallel
        super().__init__()  # parallel
        parts = stretches(options)  # parallel
        self.is_first, self.is_last = number == 0, number == len(parts) - 1  # parallel
        self.options = options  # parallel
        self.blocks = nn.ModuleList(model.blocks[block] for block in parts[number])  # parallel
        if self.is_first or self.is_last:  # parallel
            self.embedding = model.embedding  # parallel
            self.embedding.weight.shared_by = (0, options.stages - 1)  # parallel
        if self.is_first:  # parallel
            self.positions = model.positions  # parallel
        if self.is_last:  # parallel
            self.norm = model.norm  # parallel

    def forward(self, x: Tensor) -> Tensor:  # parallel
        """``[samples, seq]`` tokens or ``[samples, seq, width]`` features in; features out, or logits from the last."""
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.options.precision == "bf16"):  # parallel
            if self.is_first:  # parallel
                x = self.embedding(x) + self.positions(torch.arange(x.shape[1], device=x.device))  # parallel
            for block in self.blocks:  # parallel
                again = self.options.checkpoint_activations  # parallel
                x = checkpoint(block, x, use_reentrant=False) if again else block(x)  # parallel
            return functional.linear(self.norm(x), self.embedding.weight).float() if self.is_last else x  # parallel

    def passed(self) -> dict[str, Tensor]:  # parallel
        """What a micro-batch looks like when it comes in and when it goes out."""
        samples, seq = self.options.batch // self.options.accumulate, self.options.seq  # parallel
        tokens = torch.empty(samples, seq, dtype=torch.long, device="meta")  # parallel
        features = torch.empty(samples, seq, self.options.width, device="meta", requires_grad=True)  # parallel
        logits = torch.empty(samples, seq, self.options.vocab, device="meta", requires_grad=True)  # parallel
        return {  # parallel
            "input_args": tokens if self.is_first else features,  # parallel
            "output_args": logits if self.is_last else features,  # parallel
        }  # parallel


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step, over the global batch; NaN on every rank but the last."""
    rank, local_rank, ranks = torchrun_ranks()  # parallel
    options = settled(options, ranks, schedule="1f1b")  # parallel
    check(options, ranks, f"pp-{options.schedule}")  # parallel
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
    # Every rank has drawn the whole model, so that losses equal those of one device; each now keeps its stretches.
    numbers = range(rank, len(stretches(options)), ranks)  # parallel
    model = nn.ModuleList(Stretch(model, options, number) for number in numbers)  # parallel
    stages = [  # parallel
        pipelining.PipelineStage(part, number, len(stretches(options)), device, **part.passed())  # parallel
        for number, part in zip(numbers, model, strict=True)  # parallel
    ]  # parallel
    ends = dist.new_group([0, ranks - 1], group_desc="embedding")  # parallel
    fused = device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=fused)
    faults = TorchFaults(options, model, device)

    def fetch(step: int) -> tuple[torch.Tensor, ...]:
        batch = micro_batches(options, step, rank, ranks)  # parallel
        return on_device(batch, device)

    def loss_of(logits: Tensor, targets: Tensor) -> Tensor:  # parallel
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten()) / options.accumulate  # parallel

    schedule = SCHEDULES[options.schedule](  # parallel
        stages if options.schedule == "interleaved" else stages[0],  # parallel
        n_microbatches=options.accumulate,  # parallel
        loss_fn=loss_of,  # parallel
        scale_grads=False,  # parallel
    )  # parallel

    def accumulate_gradients(batch: tuple[torch.Tensor, ...]) -> torch.Tensor | None:  # parallel
        samples = batch[0].flatten(0, 1)  # parallel
        parts: list[Tensor] = []  # parallel
        given = (samples[:, :-1],) if rank == 0 else ()  # parallel
        targets = samples[:, 1:] if rank == ranks - 1 else None  # parallel
        schedule.step(*given, target=targets, losses=parts, return_outputs=False)  # parallel
        if rank in (0, ranks - 1):  # parallel
            embedding = model[0 if rank == 0 else -1].embedding.weight  # parallel
            dist.all_reduce(embedding.grad, group=ends)  # parallel
        return torch.stack(parts).detach().sum() if parts else None  # parallel

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
    by_hand(train, Watch(speaker=-1))  # parallel
