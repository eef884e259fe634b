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
    return {address(storage): storage.nbytes() for storage in found}


def address(storage: torch.UntypedStorage) -> int:
    """Where a storage's bytes are, 0 where it has none; of one without data (a fake tensor's) what stands for it."""
    return storage._cdata if storage.device.type == "meta" else storage.data_ptr()


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
    return list({address(storage): storage for storage in found}.values())


def _bucket_bytes(module: torch.nn.Module) -> int:
    """DDP keeps its buckets to itself; together they are as large as what they hold."""
    held = (p for wrapped in _wrapped(module) for p in replicated(wrapped) if p.requires_grad)
    return sum(p.numel() * p.element_size() for p in held)


def replicated(module: torch.nn.Module) -> list[torch.nn.Parameter]:
    """All parameters but those that DDP was told to leave alone, as experts are that lie on one rank each.

    What it wraps and does not leave alone it keeps equal on all ranks.
    """
    own = {
        parameter
        for wrapped in _wrapped(module)
        for name, parameter in wrapped.module.named_parameters()
        if name in wrapped.parameters_to_ignore
    }
    return [parameter for parameter in module.parameters() if parameter not in own]


def has_bucket_copies(module: torch.nn.Module) -> bool:
    return any(not wrapped.gradient_as_bucket_view for wrapped in _wrapped(module))


def _wrapped(module: torch.nn.Module) -> list[DistributedDataParallel]:
    """What DDP wraps; of several networks of one script each by itself."""
    return [one for one in module.modules() if isinstance(one, DistributedDataParallel)]


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[torch.Tensor, dict[str, Any]]:
    """What an optimizer keeps per parameter. ZeRO's lies in the optimizer of this rank's share, within it."""
    inner = getattr(optimizer, "optim", None)
    return inner.state if isinstance(inner, torch.optim.Optimizer) else optimizer.state


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    values = (value for state in optimizer_state(optimizer).values() for value in state.values())
    return sum(storages(value for value in values if isinstance(value, torch.Tensor)).values())


@dataclass
class _Frame:
    """A module whose forward is running, and the storages of its parameters once something was saved in it."""

    module: torch.nn.Module
    is_root: bool
    parameters: dict[int, torch.UntypedStorage] | None = None

    def holds(self, place: int) -> bool:
        if self.parameters is None:
            found = (local(p).untyped_storage() for p in self.module.parameters(recurse=self.is_root))
            self.parameters = {address(storage): storage for storage in found}
        storage = self.parameters.get(place)
        # FSDP frees a block's parameters while the root still runs, and an activation may come to lie in their place.
        return storage is not None and address(storage) == place


class _Saved:
    """What autograd holds in a saved tensor's place. It drops it after backward, which is when the storage counts down.

    The tensor is autograd's own copy, without a history, so nothing here keeps a graph alive.
    """

    def __init__(self, tensor: torch.Tensor, place: int, saved: SavedTensors) -> None:
        self.tensor, self._place, self._saved = tensor, place, saved
        saved.hold(place, local(tensor).untyped_storage().nbytes())

    def __del__(self) -> None:
        self._saved.drop(self._place)


@dataclass
class SavedTensors:
    """A context around one step: ``peak_bytes`` is the most that autograd kept for backward at once.

    Parameters are left out. Under FSDP a module's are whole only while it runs, at addresses of the moment; so they are
    recognised by the modules that are running when a tensor is saved. Their unsharded copies count as temporaries.
    """

    peak_bytes: int = 0
    alive_bytes: int = 0
    _held: dict[int, tuple[int, int]] = field(default_factory=dict)
    _frames: list[_Frame] = field(default_factory=list)
    _contexts: ExitStack = field(default_factory=ExitStack)

    @property
    def held(self) -> frozenset[int]:
        """Addresses of the storages under what is kept at the moment."""
        return frozenset(self._held)

    def hold(self, place: int, size_bytes: int) -> None:
        """One more saved tensor lies in the storage at ``place``; a storage counts once, as large as it is now."""
        times, known_bytes = self._held.get(place, (0, 0))
        self._held[place] = times + 1, max(known_bytes, size_bytes)
        self.alive_bytes += max(0, size_bytes - known_bytes)
        self.peak_bytes = max(self.peak_bytes, self.alive_bytes)

    def drop(self, place: int) -> None:
        times, known_bytes = self._held.pop(place)
        if times > 1:
            self._held[place] = times - 1, known_bytes
        else:
            self.alive_bytes -= known_bytes

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

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor | _Saved:
        place = address(local(tensor).untyped_storage())
        if not place or any(frame.holds(place) for frame in self._frames):
            return tensor
        return _Saved(tensor, place, self)


def _unpack(packed: torch.Tensor | _Saved) -> torch.Tensor:
    return packed.tensor if isinstance(packed, _Saved) else packed
