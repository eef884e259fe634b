"""Prints, as JSON, what ``torch_memory`` says of one small model: plain, under DDP (and ZeRO), FSDP2, FSDP1 and TP."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from meshscope.capture.workers import torch_memory
from meshscope.capture.workers.torch_memory import SavedTensors


def model() -> torch.nn.Sequential:
    torch.manual_seed(0)
    linear = (torch.nn.Linear(32, 64, bias=False), torch.nn.Linear(64, 16, bias=False))
    return torch.nn.Sequential(linear[0], torch.nn.Tanh(), linear[1])


def sharded() -> torch.nn.Module:
    whole = model()
    for layer in whole:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    return fully_shard(whole)


def flat() -> torch.nn.Module:
    """FSDP1 by its own means; sharding over one rank, which it would turn into none."""
    whole = model()
    about = {
        "device_id": torch.device("cpu"),
        "use_orig_params": True,
        "sharding_strategy": ShardingStrategy.FULL_SHARD,
    }
    for number in (0, 2):
        whole[number] = FullyShardedDataParallel(whole[number], **about)
    return FullyShardedDataParallel(whole, **about)


def split() -> torch.nn.Module:
    mesh = init_device_mesh("cpu", (1,))
    return parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def replicated_in_part() -> torch.nn.Module:
    """DDP leaves the second layer alone, as one whose parameters lie on this rank only."""
    whole = model()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(whole, ["2.weight"])
    return DistributedDataParallel(whole, gradient_as_bucket_view=True)


def sizes(
    module: torch.nn.Module, micro_batches: int = 1, make: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW
) -> dict[str, int]:
    """Of the second step; the gradients right before the update, and again once they are cleared."""
    optimizer = make(module.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        with SavedTensors() as saved:
            for _ in range(micro_batches):
                module(torch.ones(8 // micro_batches, 32)).sum().backward()
        gradients = torch_memory.gradient_bytes(module)
        optimizer.step()
    optimizer.zero_grad()
    return {
        "parameters": torch_memory.parameter_bytes(module),
        "gradients": gradients,
        "gradients_after": torch_memory.gradient_bytes(module),
        "optimizer": torch_memory.optimizer_bytes(optimizer),
        "activations": saved.peak_bytes,
        "activations_after": saved.alive_bytes,
        "replicated": sum(p.nbytes for p in torch_memory.replicated(module)),
    }


def recognised() -> dict[str, bool]:
    """Whether a parameter's address is known as such while the module runs: at first, and after FSDP freed it."""
    with SavedTensors() as saved:
        layer = torch.nn.Linear(8, 8, bias=False)
        saved._enter_module(layer, ())
        address = layer.weight.untyped_storage().data_ptr()
        before = saved._frames[0].holds(address)
        layer.weight.untyped_storage().resize_(0)
        return {"before": before, "after": saved._frames[0].holds(address)}


if __name__ == "__main__":
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    found = {
        "plain": sizes(model()),
        "ddp": sizes(DistributedDataParallel(model(), gradient_as_bucket_view=True)),
        "ddp copies": sizes(DistributedDataParallel(model())),
        "zero1": sizes(
            DistributedDataParallel(model(), gradient_as_bucket_view=True),
            make=partial(ZeroRedundancyOptimizer, optimizer_class=torch.optim.AdamW),
        ),
        "fsdp": sizes(sharded()),
        "fsdp1": sizes(flat()),
        "tp": sizes(split()),
        "ddp in part": sizes(replicated_in_part()),
        "recognised": recognised(),
    }
    found["plain ×4"] = sizes(model(), micro_batches=4)
    found["fsdp ×4"] = sizes(sharded(), micro_batches=4)
    print(json.dumps(found), flush=True)
    os._exit(0)
