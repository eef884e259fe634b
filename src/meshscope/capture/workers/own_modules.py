"""What a torch script has built, found among the living objects: its modules, its optimizers, and its strategy.

Looked for once, after the first step: then every wrapper is in its place, and nothing had to be patched for it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Approach:
    """``seen`` is the strategy as meshscope's rules know it, "" for none of them; ``title`` says it to a person."""

    seen: str
    title: str


DEEPSPEED = Approach("", "DeepSpeed (seen)")


class Optimizers:
    """Several optimizers as one that has the states of all; the same parameter counts once."""

    def __init__(self, members: Iterable[torch.optim.Optimizer]) -> None:
        self.members = tuple(members)

    @property
    def state(self) -> dict[torch.Tensor, dict[str, Any]]:
        found: dict[torch.Tensor, dict[str, Any]] = {}
        for optimizer in self.members:
            inner = getattr(optimizer, "optim", None)  # ZeRO keeps its share of the state in another one
            found |= (inner if isinstance(inner, torch.optim.Optimizer) else optimizer).state
        return found

    def parameter_ids(self) -> set[int]:
        return {id(p) for optimizer in self.members for group in optimizer.param_groups for p in group["params"]}


def roots(optimizers: Optimizers) -> list[torch.nn.Module]:
    """The outermost modules that hold parameters of the optimizers."""
    wanted = optimizers.parameter_ids()
    # By type(): asking an object for its class may run code of a proxy.
    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    found = [module for module in modules if any(id(p) in wanted for p in module.parameters())]
    within = {id(child) for module in found for child in module.modules() if child is not module}
    return [module for module in found if id(module) not in within]


def whole(found: list[torch.nn.Module]) -> torch.nn.Module:
    """One module that stands for all of them."""
    return found[0] if len(found) == 1 else torch.nn.ModuleList(found)


def parameter_count(module: torch.nn.Module) -> int:
    """Trainable numbers, of a sharded parameter all of it. FSDP1 shows a rank only its own shard."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def approach(module: torch.nn.Module, optimizers: Optimizers, ranks: int) -> Approach:
    """The strategy, by the classes of its wrappers."""
    modules = list(module.modules())
    if any(type(one).__name__ == "DeepSpeedEngine" for one in modules):
        return DEEPSPEED
    sharded = [one for one in modules if _is_a(one, "torch.distributed.fsdp", "FSDPModule")]
    if sharded:
        return _fsdp2(sharded[0])
    if any(_is_a(one, "torch.distributed.fsdp", "FullyShardedDataParallel") for one in modules):
        return Approach("fsdp", "FSDP1 (seen)")
    if any(_is_a(one, "torch.nn.parallel", "DistributedDataParallel") for one in modules):
        zero = "torch.distributed.optim.zero_redundancy_optimizer"
        if any(_is_a(one, zero, "ZeroRedundancyOptimizer") for one in optimizers.members):
            return Approach("zero1", "ZeRO-1 with DDP (seen)")
        return Approach("ddp", "DDP (seen)")
    return _unwrapped(modules, ranks)


def _fsdp2(module: torch.nn.Module) -> Approach:
    dims = {getattr(getattr(p, "device_mesh", None), "ndim", 1) for p in module.parameters()}
    return Approach("hsdp", "HSDP (seen)") if dims == {2} else Approach("fsdp", "FSDP2 (seen)")


def _unwrapped(modules: list[torch.nn.Module], ranks: int) -> Approach:
    if any(_is_a(one, "torch.nn.parallel", "DataParallel") for one in modules):
        return Approach("", "DataParallel (seen)")
    if any(_is_a(p, "torch.distributed.tensor", "DTensor") for one in modules for p in one.parameters(recurse=False)):
        return Approach("", "DTensor (seen)")
    if ranks > 1:
        return Approach("", "several ranks, no wrapper seen")
    return Approach("torch-single", "one torch process (seen)")


def _is_a(one: object, module: str, name: str) -> bool:
    """Whether it is of a class that the script itself must have loaded; nothing is imported to find out."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and issubclass(type(one), kind)
