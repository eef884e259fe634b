"""What a torch rank's memory is for. Bytes are of storages, each counted once: what is alive, padding and all."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.parallel import DistributedDataParallel


def local(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's shard of a DTensor; any other tensor as it is."""
    own = getattr(tensor, "_local_tensor", None)
    return tensor.detach() if own is None else own.detach()


def storages(tensors: Iterable[torch.Tensor]) -> dict[int, int]:
    """Address → bytes of every storage under the tensors."""
    found = (local(tensor).untyped_storage() for tensor in tensors)
    return {storage.data_ptr(): storage.nbytes() for storage in found}


def parameter_bytes(module: torch.nn.Module) -> int:
    return sum(storages(module.parameters()).values())


def buffer_bytes(module: torch.nn.Module) -> int:
    return sum(storages(module.buffers()).values())


def gradient_bytes(module: torch.nn.Module) -> int:
    """Gradients that are alive now, and DDP's buckets, which live on when gradients are cleared.

    With ``gradient_as_bucket_view`` gradients lie in the buckets; without it the buckets are a second copy.
    """
    gradients = sum(storage.nbytes() for storage in gradient_storages(module))
    buckets = _bucket_bytes(module)
    return gradients + buckets if has_bucket_copies(module) else max(gradients, buckets)


def gradient_storages(module: torch.nn.Module) -> list[torch.UntypedStorage]:
    """The storages under the gradients that are alive now, each once."""
    found = (local(p.grad).untyped_storage() for p in module.parameters() if p.grad is not None)
    return list({storage.data_ptr(): storage for storage in found}.values())


def _bucket_bytes(module: torch.nn.Module) -> int:
    """DDP keeps its buckets to itself; together they are as large as what they hold."""
    if not isinstance(module, DistributedDataParallel):
        return 0
    return sum(p.numel() * p.element_size() for p in module.parameters() if p.requires_grad)


def has_bucket_copies(module: torch.nn.Module) -> bool:
    return isinstance(module, DistributedDataParallel) and not module.gradient_as_bucket_view


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    values = (value for state in optimizer.state.values() for value in state.values())
    return sum(storages(value for value in values if isinstance(value, torch.Tensor)).values())


@dataclass
class _Frame:
    """A module whose forward is running, and the addresses of its parameters once something was saved in it."""

    module: torch.nn.Module
    is_root: bool
    addresses: frozenset[int] | None = None

    def holds(self, address: int) -> bool:
        if self.addresses is None:
            self.addresses = frozenset(storages(self.module.parameters(recurse=self.is_root)))
        return address in self.addresses


@dataclass
class SavedTensors:
    """A context around one step: ``size_bytes`` is what autograd kept for backward, parameters left out.

    Under FSDP a module's parameters are whole only while it runs, at addresses of the moment; so parameters are
    recognised by the modules that are running when a tensor is saved. Their unsharded copies count as temporaries.
    """

    size_by_address: dict[int, int] = field(default_factory=dict)
    _frames: list[_Frame] = field(default_factory=list)
    _contexts: ExitStack = field(default_factory=ExitStack)

    @property
    def size_bytes(self) -> int:
        return sum(self.size_by_address.values())

    def __enter__(self) -> SavedTensors:
        self._contexts.enter_context(torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack))
        for handle in (
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ):
            self._contexts.callback(handle.remove)
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._contexts.close()

    def _enter_module(self, module: torch.nn.Module, _: Any) -> None:
        self._frames.append(_Frame(module, is_root=not self._frames))

    def _leave_module(self, *_: Any) -> None:
        if self._frames:
            self._frames.pop()

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = local(tensor).untyped_storage()
        address = storage.data_ptr()
        if address and not any(frame.holds(address) for frame in self._frames):
            self.size_by_address[address] = max(storage.nbytes(), self.size_by_address.get(address, 0))
        return tensor


def _unpack(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
