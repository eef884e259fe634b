"""Which GPUs and MIG instances CUDA shows to the ranks, and under which numbers.

CUDA takes CUDA_VISIBLE_DEVICES from left to right: numbers, UUIDs or enough of their beginning to be unique, and MIG
instances by UUID or, by older drivers, as MIG-GPU-UUID/GPU instance/compute instance. It stops at the first that names
none. Reference: CUDA Programming Guide, "CUDA Environment Variables"; MIG User Guide, "CUDA Device Enumeration".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import psutil
import pynvml

_VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Shown:
    """One device under the ``name`` that readings get; ``why`` says what keeps it from being read.

    ``parent`` is the whole GPU's handle and ``gpu_instance`` its number there, where it is a MIG instance.
    """

    uuid: str
    handle: Any = None
    parent: Any = None
    gpu_instance: int = -1
    older_name: str = ""
    name: str = ""
    why: str = ""

    @property
    def is_instance(self) -> bool:
        return self.parent is not None

    def is_meant_by(self, text: str) -> bool:
        return bool(text) and (self.uuid.startswith(text) or self.older_name == text)


@dataclass
class Sight:
    """What the ranks see, by the environment that each of their processes was started with; ours until there are any.

    Ranks that were each given devices of their own all count from 0: then a number tells none apart, and devices are
    named by UUID.
    """

    pids: Callable[[], Mapping[int, int]]
    _of: dict[int, str | None] = field(default_factory=dict)
    _now: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        self._now = self._asked()

    def has_changed(self) -> bool:
        """Whether ranks that were not there before see other devices than was known."""
        before, self._now = self._now, self._asked()
        return before != self._now

    def devices(self) -> list[Shown]:
        cards = _cards()
        if len(self._now) == 1:
            return [replace(one, name=f"gpu {place}") for place, one in enumerate(visible(cards, self._now[0]))]
        each = {one.uuid: one for asked in self._now for one in visible(cards, asked)}
        return [replace(one, name=uuid) for uuid, one in each.items()]

    def _asked(self) -> tuple[str | None, ...]:
        for pid in self.pids().values():
            if pid not in self._of:
                self._look(pid)
        return tuple(dict.fromkeys(self._of.values())) or (os.environ.get(_VARIABLE),)

    def _look(self, pid: int) -> None:
        try:
            environ = psutil.Process(pid).environ()
        except (psutil.Error, OSError):
            return  # It has ended, or is another user's: it tells nothing.
        if environ:  # It has none in the moment in which it takes on its program.
            self._of[pid] = environ.get(_VARIABLE)


def visible(cards: list[list[Shown]], asked: str | None) -> list[Shown]:
    """The devices of ``cards`` (each GPU, or its MIG instances) in CUDA's order for one value of the variable.

    Without one: all whole GPUs; where there are none, all instances, of which CUDA gives a process only the first.
    """
    if asked is None:
        whole = [card[0] for card in cards if card and not card[0].is_instance]
        return whole or [one for card in cards for one in card]
    found: list[Shown] = []
    for text in asked.split(","):
        one = _meant(cards, text.strip())
        if one is None:
            break
        found.append(one)
    return found


def _meant(cards: list[list[Shown]], text: str) -> Shown | None:
    """A number means a GPU, and of one that is divided the first instance."""
    if text.isdecimal():
        place = int(text)
        return next(iter(cards[place]), None) if place < len(cards) else None
    meant = [one for card in cards for one in card if one.is_meant_by(text)]
    return meant[0] if len(meant) == 1 else None


def _cards() -> list[list[Shown]]:
    return [_card(index) for index in range(pynvml.nvmlDeviceGetCount())]


def _card(index: int) -> list[Shown]:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        uuid = str(pynvml.nvmlDeviceGetUUID(handle))
    except pynvml.NVMLError as error:
        return [Shown(f"GPU at place {index}", why=str(error))]
    return _instances(handle, uuid) if _is_divided(handle) else [Shown(uuid, handle)]


def _is_divided(handle: Any) -> bool:
    try:
        now, _ = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError:
        return False  # Only GPUs that can be divided answer.
    return bool(now == pynvml.NVML_DEVICE_MIG_ENABLE)


def _instances(card: Any, card_uuid: str) -> list[Shown]:
    """In NVML's order; places where no instance was made answer with an error and are passed over."""
    found = []
    for place in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(card)):
        try:
            handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, place)
            uuid = str(pynvml.nvmlDeviceGetUUID(handle))
            gpu_instance = pynvml.nvmlDeviceGetGpuInstanceId(handle)
            compute_instance = pynvml.nvmlDeviceGetComputeInstanceId(handle)
        except pynvml.NVMLError:
            continue
        older_name = f"MIG-{card_uuid}/{gpu_instance}/{compute_instance}"
        found.append(Shown(uuid, handle, card, gpu_instance, older_name))
    return found
