"""What the segments of an allocator's snapshot hold: the state when it was taken, exact."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from meshscope.errors import TraceError

_LARGEST = 1 << 50
_ACTIVE = "active"


@dataclass
class State:
    """Bytes that one device's segments hold at the end, summed as they are read."""

    reserved: int = 0
    allocated: int = 0
    active: int = 0
    requested: int = 0
    segments: int = 0
    blocks: int = 0
    pending_free: int = 0
    largest_free: int = 0
    inactive_split: int = 0
    unused_segments: int = 0
    expandable: int = 0
    private_pools: int = 0
    has_requested: bool = True


def states(segments: list[Any], most: int, dropped: Counter[str]) -> dict[int, State]:
    """By device. ``most`` is how many blocks a file of its size can hold: more are one list referred to many times."""
    found: dict[int, State] = defaultdict(State)
    blocks = 0
    for segment in segments:
        sizes = _numbers(segment, "total_size", "allocated_size")
        if sizes is None:
            dropped["segment without sizes"] += 1
            continue
        listed = segment.get("blocks")
        listed = listed if isinstance(listed, list) else []
        blocks += len(listed)
        if blocks > most:
            raise TraceError("This snapshot refers to the same blocks over and over.", hint="It is no real snapshot.")
        _add(found[device_of(segment)], segment, sizes, listed, dropped)
    return dict(found)


def _add(state: State, segment: dict[str, Any], sizes: list[int], listed: list[Any], dropped: Counter[str]) -> None:
    total, allocated = sizes
    active = _numbers(segment, "active_size")
    requested = _numbers(segment, "requested_size")
    state.segments += 1
    state.reserved += total
    state.allocated += allocated
    used = active[0] if active else allocated
    state.active += used
    state.requested += requested[0] if requested else 0
    state.has_requested &= requested is not None
    state.expandable += total if segment.get("is_expandable") is True else 0
    pool = segment.get("segment_pool_id")
    state.private_pools += total if isinstance(pool, tuple) and any(pool) else 0
    free, pending, count = _free(listed, dropped)
    state.blocks += count
    state.pending_free += pending
    state.largest_free = max(state.largest_free, *free, 0)
    if not used:
        state.unused_segments += total
    else:
        state.inactive_split += sum(free)


def _free(listed: list[Any], dropped: Counter[str]) -> tuple[list[int], int, int]:
    """Sizes of the free blocks, bytes freed but still in use by a stream, and how many blocks there are."""
    free, pending, count = [0], 0, 0
    for block in listed:
        sizes = _numbers(block, "size")
        if sizes is None:
            dropped["block without a size"] += 1
            continue
        count += 1
        state = str(block.get("state", ""))
        if state == "inactive":
            free.append(sizes[0])
        elif state.startswith(_ACTIVE) and state != "active_allocated":
            pending += sizes[0]
    return free, pending, count


def _numbers(owner: Any, *names: str) -> list[int] | None:
    values = [owner.get(name) for name in names] if isinstance(owner, dict) else [None]
    return values if all(type(value) is int and 0 <= value < _LARGEST for value in values) else None  # type: ignore[return-value]  # that is what the test says


def device_of(segment: dict[str, Any]) -> int:
    """0 where the segment tells none that can be."""
    device = segment.get("device", 0)
    return device if type(device) is int and 0 <= device < 2**15 else 0
