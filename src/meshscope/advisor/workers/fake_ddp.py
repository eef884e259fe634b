"""DDP on fake tensors: its buckets as torch lays them out, without the reducer, which needs real memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from meshscope.advisor.workers.scripted import UntoldError

_MIB = 2**20
_DEFAULT_MIB = 25


class FakeDdp(DistributedDataParallel):
    """Holds what the reducer holds: buckets from the start on, and gradients in them or beside them.

    The wrapped module runs as it is. A gradient that is ready is copied into its bucket; with
    ``gradient_as_bucket_view`` its place there becomes the gradient, without it both stay. Within ``no_sync`` gradients
    lie where autograd puts them. What differs from the reducer in a step after the first: buffers are not broadcast.
    """

    def __init__(
        self,
        module: nn.Module,
        *_: Any,
        bucket_cap_mb: float | None = None,
        gradient_as_bucket_view: bool = False,
        **__: Any,
    ) -> None:
        nn.Module.__init__(self)
        self.module = module
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = True
        self.device_type = next((p.device.type for p in module.parameters()), "cpu")
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        held = [p for name, p in module.named_parameters() if p.requires_grad and name not in self.parameters_to_ignore]
        first = dist._DEFAULT_FIRST_BUCKET_BYTES if bucket_cap_mb is None else 0
        cap = int((_DEFAULT_MIB if bucket_cap_mb is None else bucket_cap_mb) * _MIB)
        self.buckets: list[torch.Tensor] = []
        self._waiting: list[int] = []
        for members in _assigned(held[::-1], [first or cap, cap]):
            self._lay_out(members)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        raise UntoldError("compressed gradients (--compress) are made by a hook of DDP's that needs real tensors")

    def _lay_out(self, members: list[nn.Parameter]) -> None:
        bucket = torch.zeros(sum(p.numel() for p in members), dtype=members[0].dtype, device=members[0].device)
        number = len(self.buckets)
        self.buckets.append(bucket)
        self._waiting.append(len(members))
        places = bucket.split([p.numel() for p in members])
        for parameter, place in zip(members, places, strict=True):
            ready = partial(self._ready, number, len(members), place.view_as(parameter))
            parameter.register_post_accumulate_grad_hook(ready)

    @torch.no_grad()
    def _ready(self, number: int, members: int, place: torch.Tensor, parameter: nn.Parameter) -> None:
        if not self.require_backward_grad_sync or parameter.grad is None:
            return
        if parameter.grad.untyped_storage()._cdata != place.untyped_storage()._cdata:
            place.copy_(parameter.grad)
            if self.gradient_as_bucket_view:
                parameter.grad = place
        self._waiting[number] -= 1
        if not self._waiting[number]:
            self._waiting[number] = members
            dist.all_reduce(self.buckets[number])


def _assigned(parameters: list[nn.Parameter], limits: list[int]) -> list[list[nn.Parameter]]:
    """Parameters by bucket, as torch itself assigns them in the order in which gradients come to be ready."""
    indices, _ = dist._compute_bucket_assignment_by_size(parameters, [limit or sys.maxsize for limit in limits])
    return [[parameters[index] for index in bucket] for bucket in indices]
