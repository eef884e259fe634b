"""A torch rank's memory by category, gathered over the moments at which each can be read."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from meshscope.capture.workers import torch_memory
from meshscope.capture.workers.post import Post
from meshscope.capture.workers.torch_device import Cpu, Cuda
from meshscope.recording.entries import MemoryMeasured

_CATEGORIES = ("parameters", "gradients", "optimizer", "activations")


@dataclass
class Account:
    module: torch.nn.Module
    optimizer: torch.optim.Optimizer
    sizes: dict[str, int] = field(default_factory=dict)
    _before_window_bytes: int = 0
    _old_gradients: list[tuple[StorageWeakRef, int]] = field(default_factory=list)

    def note_trees(self, *, is_first_update: bool) -> None:
        """Right before the optimizer's update, when every gradient is alive.

        The first update makes the optimizer's state: without any before it, nothing is known of its size. One that
        has none after an update (plain SGD) needs none.
        """
        self.sizes |= {
            "parameters": torch_memory.parameter_bytes(self.module),
            "gradients": torch_memory.gradient_bytes(self.module),
        }
        if torch_memory.optimizer_state(self.optimizer) or not is_first_update:
            self.sizes["optimizer"] = torch_memory.optimizer_bytes(self.optimizer)

    def note_saved(self, size_bytes: int) -> None:
        self.sizes["activations"] = size_bytes

    def note_window(self) -> None:
        """Right before the first recorded step of a memory window: what lives from step to step and is alive now."""
        self._before_window_bytes = (
            torch_memory.parameter_bytes(self.module)
            + torch_memory.buffer_bytes(self.module)
            + torch_memory.gradient_bytes(self.module)
            + torch_memory.optimizer_bytes(self.optimizer)
        )
        self._old_gradients = [
            (StorageWeakRef(storage), storage.nbytes()) for storage in torch_memory.gradient_storages(self.module)
        ]

    def peak_bytes(self, growth_bytes: int) -> int:
        """The peak on a CPU, from what the profiler saw come on top of what was there before it.

        It does not see the end of what it did not see begin: gradients that a script clears at the start of its step
        made room for the new ones, and are taken off here.
        """
        cleared_bytes = sum(size_bytes for storage, size_bytes in self._old_gradients if storage.expired())
        return self._before_window_bytes - cleared_bytes + growth_bytes

    @property
    def _together_bytes(self) -> int:
        """What was alive at one and the same moment, the update."""
        return sum(size for name, size in self.sizes.items() if name != "activations")

    def entry(self, post: Post, device: Cpu | Cuda, step: int, *, peak_bytes: int, peak_how: str) -> MemoryMeasured:
        """What is known by now; temporaries are what the peak holds beyond the other categories.

        They are left out where the categories were not all alive at the peak, which shows as a sum above it. A peak
        below what is alive together at the update cannot be: none is told then.
        """
        sizes = {name: self.sizes[name] for name in _CATEGORIES if name in self.sizes}
        peak_bytes = peak_bytes if peak_bytes >= self._together_bytes else -1
        how = {name: "measured" if name == "activations" else "exact" for name in sizes}
        beyond = peak_bytes - sum(sizes.values())
        if len(sizes) == len(_CATEGORIES) and beyond >= 0:
            sizes["temporaries"], how["temporaries"] = beyond, "derived"
        counters = device.counters()
        return MemoryMeasured(
            t_ns=post.journal.now_ns(),
            rank=post.rank,
            device=post.local_rank,
            step=step,
            source=self._source(device),
            categories=sizes,
            how=how,
            peak_bytes=peak_bytes,
            peak_how=peak_how if peak_bytes >= 0 else "",
            pool_bytes=counters.reserved,
            in_use_bytes=counters.allocated,
            capacity_bytes=device.capacity_bytes,
        )

    def _source(self, device: Cpu | Cuda) -> str:
        peak = "CUDA's allocator" if device.is_cuda else "torch.profiler's memory events"
        copies = "; gradients twice, in DDP's buckets too" if torch_memory.has_bucket_copies(self.module) else ""
        return f"tensors of module and optimizer; saved tensors of one step; {peak}{copies}"
