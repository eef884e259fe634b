"""The device of a torch rank: what it is called and what its allocator counts."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from meshscope.capture import machine


@dataclass(frozen=True)
class Counters:
    """Bytes; −1 where no allocator tells (torch keeps no count of CPU memory). ``peak`` is since the last reset."""

    allocated: int = -1
    reserved: int = -1
    peak: int = -1


class Cpu:
    kind = "cpu"
    is_cuda = False
    uuid = ""
    capacity_bytes = -1

    def __init__(self) -> None:
        self.name = machine.cpu_name()

    def counters(self) -> Counters:
        return Counters()

    def reset_peak(self) -> None:
        return


class Cuda:
    """A GPU as torch numbers it (ROCm's too). Named and asked by index, without making it the current device."""

    kind = "gpu"
    is_cuda = True

    def __init__(self, index: int) -> None:
        self._index = index
        properties = torch.cuda.get_device_properties(index)
        self.name = str(properties.name)
        self.uuid = str(getattr(properties, "uuid", ""))
        self.capacity_bytes = int(getattr(properties, "total_memory", -1))

    def counters(self) -> Counters:
        # One call, unflattened: memory_allocated() and its siblings each build the flat table anew, at every step.
        stats = torch.cuda.memory_stats_as_nested_dict(self._index)
        allocated, reserved = (stats.get(name, {}).get("all", {}) for name in ("allocated_bytes", "reserved_bytes"))
        return Counters(allocated.get("current", -1), reserved.get("current", -1), allocated.get("peak", -1))

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats(self._index)


def device_of(kind: str, local_rank: int) -> Cpu | Cuda:
    """The device a rank was planned on; a CPU where torch finds no GPU after all."""
    return Cuda(local_rank) if kind != "cpu" and torch.cuda.is_available() else Cpu()
