"""What a rank's last words say of the memory that ran out: the figures in the messages of torch, XLA and the host.

torch's (``CUDACachingAllocator.cpp``): *Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which
1.20 GiB is free. Process 7 has 3.00 GiB memory in use. Including non-PyTorch memory, this process has 74.9 GiB memory
in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but unallocated.*
Before 2.1 it was *Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total capacity; 70.00 GiB already allocated; …)*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {
    "bytes": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
    "k": 2**10, "m": 2**20, "g": 2**30, "kb": 10**3, "mb": 10**6, "gb": 10**9,
}  # fmt: skip
_AMOUNT = r"(\d{1,20}(?:\.\d{1,6})?) ?([A-Za-z]{1,5})\b"
_RAN_OUT = re.compile(
    r"(CUDA|HIP|XPU) out of memory|OutOfMemoryError|RESOURCE_EXHAUSTED\b.{0,80}out of memory"
    r"|DefaultCPUAllocator: (can't allocate|not enough) memory|\bMemoryError\b",
    re.IGNORECASE | re.DOTALL,
)
_ON_HOST = re.compile(r"DefaultCPUAllocator|\bMemoryError\b")
_ASKED = re.compile(rf"(?:tried to allocate|trying to allocate|out of memory allocating) {_AMOUNT}", re.IGNORECASE)
_CAPACITY = re.compile(rf"total capacity of {_AMOUNT}|{_AMOUNT} total capacity")
_FREE = re.compile(rf"of which {_AMOUNT} is free|; {_AMOUNT} free[;)]")
_OTHER = re.compile(rf"Process \d{{1,10}} has {_AMOUNT} memory in use")
_MINE = re.compile(rf"this process has {_AMOUNT} memory in use")
_ALLOCATED = re.compile(rf"{_AMOUNT} is allocated by PyTorch|{_AMOUNT} already allocated")
_UNALLOCATED = re.compile(rf"{_AMOUNT} is reserved by PyTorch but unallocated")
_RESERVED = re.compile(rf"{_AMOUNT} reserved in total by PyTorch")


@dataclass(frozen=True)
class LastWords:
    """Bytes as the message rounds them, None for what it does not say. ``others_bytes`` are other processes'."""

    is_host: bool
    asked_bytes: int | None
    capacity_bytes: int | None
    device_free_bytes: int | None
    allocated_bytes: int | None
    reserved_bytes: int | None
    others_bytes: int | None
    process_bytes: int | None


def last_words(why: str, lines: tuple[str, ...]) -> LastWords | None:
    """None where memory was not what ran out. ``why`` is the rank's exception, ``lines`` the end of its log."""
    found = [text for text in (why, *reversed(lines)) if _RAN_OUT.search(text)]
    if not found:
        return None
    text = next((text for text in found if _ASKED.search(text)), found[0])
    allocated, unallocated = _bytes(_ALLOCATED, text), _bytes(_UNALLOCATED, text)
    reserved = _bytes(_RESERVED, text)
    if reserved is None and allocated is not None and unallocated is not None:
        reserved = allocated + unallocated
    others = [_amount(*match.groups()) for match in _OTHER.finditer(text)]
    return LastWords(
        is_host=_ON_HOST.search(text) is not None,
        asked_bytes=_bytes(_ASKED, text),
        capacity_bytes=_bytes(_CAPACITY, text),
        device_free_bytes=_bytes(_FREE, text),
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        others_bytes=sum(one for one in others if one is not None) if others else None,
        process_bytes=_bytes(_MINE, text),
    )


def _bytes(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return _amount(*(part for part in match.groups() if part is not None)) if match else None


def _amount(digits: str, unit: str) -> int | None:
    scale = _UNITS.get(unit.lower())
    return None if scale is None else round(float(digits) * scale)
