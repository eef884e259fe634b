# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.6", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "tp"
# title = "PyTorch tensor parallel: every layer split over all ranks, activations between layers by sequence"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 2
# arguments = ["--spec", "tp"]
#
# [[tool.meshscope.strategy]]
# name = "fsdp-tp"
# title = "PyTorch FSDP2 × tensor parallel: layers split within a group of ranks, shards over the groups"
# framework = "torch"
# launch = "torchrun"
# min_ranks = 4
# arguments = ["--spec", "fsdp-tp", "--tensor", "2"]
# ///
"""Trains the transformer with tensor and sequence parallelism: ranks share each layer, and each sample.

    torchrun --standalone --nproc_per_node 2 workloads/torch_tp.py --model tiny --steps 5
    torchrun --standalone --nproc_per_node 4 workloads/torch_tp.py --model tiny --steps 5 --tensor 2

A rank has some of the attention heads, of the MLP's features and of the vocabulary, and in between, where a layer works
on each token alone, some tokens of each sample. So activations are all-gathered before a pair of matrices and
reduce-scattered after it, and nothing can be computed meanwhile: that is the price of the method. With a --tensor of
fewer ranks than there are the mesh has a second axis, over which FSDP2 shards what each rank has.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.distributed as dist  # parallel
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh  # parallel
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # parallel
from torch.distributed.tensor import DTensor, Replicate, Shard  # parallel
from torch.distributed.tensor.parallel import (  # parallel
    ColwiseParallel,  # parallel
    RowwiseParallel,  # parallel
    SequenceParallel,  # parallel
    loss_parallel,  # parallel
    parallelize_module,  # parallel
)  # parallel

from batches import micro_batches
from degrees import settled  # parallel
from devices import torch_device, torchrun_ranks  # parallel
from injecting import TorchFaults
from models.torch_models import build, on_device, units
from models.torch_transformer import Transformer  # parallel
from options import Options, by_hand, check
from watching import Watch

BY_TOKEN = Shard(1)  # parallel
BLOCK = {  # parallel
    "attention_norm": SequenceParallel(),  # parallel
    "attention.qkv": ColwiseParallel(input_layouts=BY_TOKEN),  # parallel
    "attention.out": RowwiseParallel(output_layouts=BY_TOKEN),  # parallel
    "mlp_norm": SequenceParallel(),  # parallel
    "up": ColwiseParallel(input_layouts=BY_TOKEN),  # parallel
    "down": RowwiseParallel(output_layouts=BY_TOKEN),  # parallel
}  # parallel
ENDS = {  # parallel
    "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=BY_TOKEN),  # parallel
    "positions": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0)),  # parallel
    "norm": SequenceParallel(),  # parallel
}  # parallel


def split(model: Transformer, mesh: DeviceMesh, options: Options) -> None:  # parallel
    """Over the mesh's axis ``tensor`` within layers, and over ``data`` by FSDP if there is one.

    Every rank has drawn the whole model, so that losses equal those of one device; each now keeps its part.
    """
    for block in model.blocks:  # parallel
        parallelize_module(block, mesh["tensor"], BLOCK)  # parallel
    parallelize_module(model, mesh["tensor"], ENDS)  # parallel
    # A rank has the logits of its part of the vocabulary, for every token.
    model.norm.register_forward_hook(lambda *call: call[-1].redistribute(placements=[Replicate()]))  # parallel
    if "data" in mesh.mesh_dim_names:  # parallel
        bf16 = torch.bfloat16 if options.precision == "bf16" else None  # parallel
        policy = MixedPrecisionPolicy(param_dtype=bf16, reduce_dtype=torch.float32)  # parallel
        for block in model.blocks:  # parallel
            fully_shard(block, mesh=mesh["data"], mp_policy=policy, reshard_after_forward=options.reshard)  # parallel
        fully_shard(model, mesh=mesh["data"], mp_policy=policy, reshard_after_forward=False)  # parallel


def add_over_tokens(model: Transformer, mesh: DeviceMesh, faults: TorchFaults) -> None:  # parallel
    """A norm's gradient is a sum over tokens, of which each rank has some. FSDP adds it up by itself."""
    norms = [part for part in model.modules() if isinstance(part, torch.nn.LayerNorm)]  # parallel
    added = torch.stack([norm.weight.grad.to_local() for norm in norms])  # parallel
    if not faults.is_unsynced:  # parallel
        dist.all_reduce(added, group=mesh.get_group())  # parallel
    for norm, gradient in zip(norms, added, strict=True):  # parallel
        norm.weight.grad = DTensor.from_local(gradient, mesh, [Replicate()])  # parallel


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step: the mean over the slice of the batch that this rank shares with its peers."""
    rank, local_rank, ranks = torchrun_ranks()  # parallel
    options = settled(options, ranks, spec="tp" if options.tensor in (1, ranks) else "fsdp-tp")  # parallel
    check(options, ranks, options.spec)  # parallel
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
    shape = (ranks,) if options.spec == "tp" else (ranks // options.tensor, options.tensor)  # parallel
    names = ("data", "tensor")[-len(shape) :]  # parallel
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=names)  # parallel
    split(model, mesh, options)  # parallel
    fused = device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=fused)
    faults = TorchFaults(options, model, device)

    def fetch(step: int) -> tuple[torch.Tensor, ...]:
        batch = micro_batches(options, step, rank, ranks)  # parallel
        return on_device(batch, device)

    def accumulate_gradients(batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        loss = torch.zeros((), device=device)
        for micro_batch in zip(*batch, strict=True):
            with loss_parallel():  # parallel
                with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bf16"):
                    part = model(*micro_batch) / options.accumulate
                part.backward()
            loss += part.detach().to_local()  # parallel
        if options.spec == "tp":  # parallel
            add_over_tokens(model, mesh, faults)  # parallel
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
