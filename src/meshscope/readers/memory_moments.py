"""The moments of a snapshot that people ask for: the peak, and the last allocation that failed.

Both are reached from the end, whose state is exact: what the calls after the moment add up to is taken off again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from meshscope.readers.memory_alive import Block, Unfitting, alive, alive_at_end
from meshscope.readers.memory_history import History, net_after
from meshscope.records import Alive, Doubt, Failure

_OOM = "oom"
_MOVES = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap")


@dataclass(frozen=True)
class End:
    """What one device's allocator held at the end. ``start_bytes`` is what was allocated when the history began, −1
    where the history is not of these segments; ``rounding_bytes`` what blocks have beyond what was asked for, None
    where they do not tell that.
    """

    blocks: list[Block]
    start_bytes: int
    allocated_bytes: int
    active_bytes: int
    reserved_bytes: int
    largest_free_bytes: int
    rounding_bytes: int | None
    is_expandable: bool


@dataclass(frozen=True)
class Moments:
    alive: Alive | None = None
    failure: Failure | None = None
    doubts: tuple[Doubt, ...] = ()


def moments(end: End, past: History, zero_ns: int) -> Moments:
    """``zero_ns`` is what the record counts its times from."""
    doubts: list[Doubt] = []
    found = _peak(end, past, zero_ns, doubts)
    return Moments(found, _failure(end, past, zero_ns, doubts), tuple(doubts))


def _peak(end: End, past: History, zero_ns: int, doubts: list[Doubt]) -> Alive | None:
    if not past.calls:
        return _rounded(end, alive_at_end(end.blocks)) if end.blocks else None
    if end.start_bytes < 0:
        return None
    is_end_fuller = end.allocated_bytes > end.start_bytes + past.peak_bytes
    after = len(past.calls) - 1 if is_end_fuller else past.peak_call
    peak_bytes = max(end.start_bytes + past.peak_bytes, end.allocated_bytes)
    return _at(end, past, after, "peak", zero_ns, peak_bytes, doubts)


def _at(
    end: End, past: History, after: int, moment: str, zero_ns: int, total_bytes: int, doubts: list[Doubt]
) -> Alive | None:
    what = f"memory.alive_at_{moment}"
    try:
        found = alive(end.blocks, past.calls, after, frees=past.frees, moment=moment)
    except Unfitting as error:
        doubts.append((what, f"the history does not lead to the blocks of the snapshot: {error}"))
        return None
    rounding_bytes = total_bytes - found.total_bytes
    limit_bytes = end.allocated_bytes if end.rounding_bytes is None else max(end.rounding_bytes, 0)
    if not 0 <= rounding_bytes <= limit_bytes:
        doubts.append((what, "the allocations found alive do not add up to what the allocator held"))
        return None
    at_ns = past.calls[max(after, 0)].get("time_us", 0) * 1000
    return replace(found, rounding_bytes=rounding_bytes, time_ns=at_ns - zero_ns if at_ns else 0)


def _rounded(end: End, found: Alive) -> Alive:
    return replace(found, rounding_bytes=max(0, end.allocated_bytes - found.total_bytes))


def _failure(end: End, past: History, zero_ns: int, doubts: list[Doubt]) -> Failure | None:
    failed = [number for number, call in enumerate(past.calls) if call["action"] == _OOM]
    if not failed:
        return None
    last = failed[-1]
    call = past.calls[last]
    later = past.calls[last + 1 :]
    is_newest = not any(one["action"] in _MOVES for one in later)
    allocated_bytes, active_bytes, reserved_bytes = _held(end, past, later)
    is_known = end.start_bytes >= 0 and min(allocated_bytes, active_bytes, reserved_bytes - active_bytes) >= 0
    told = call.get("device_free", call.get("addr"))
    at_ns = call.get("time_us", 0) * 1000
    failure = Failure(
        time_ns=at_ns - zero_ns if at_ns else 0,
        times=len(failed),
        asked_bytes=call.get("size", 0),
        device_free_bytes=told if type(told) is int and 0 <= told < 1 << 50 else None,
        is_newest=is_newest,
        is_expandable=end.is_expandable,
    )
    if not is_known:
        doubts.append(("memory.failure", "what was held when memory ran out: the history is not of these segments"))
        return failure
    return replace(
        failure,
        allocated_bytes=allocated_bytes,
        reserved_bytes=reserved_bytes,
        pool_free_bytes=reserved_bytes - active_bytes,
        largest_free_bytes=end.largest_free_bytes if is_newest else None,
        alive=_at(end, past, last, "failure", zero_ns, allocated_bytes, doubts),
    )


def _held(end: End, past: History, later: Iterable[dict[str, Any]]) -> tuple[int, int, int]:
    """(allocated, active, reserved) before the ``later`` calls: the end, less what they add up to."""
    allocated, active, reserved = net_after(list(later), has_requests=past.frees == "free_requested")
    return end.allocated_bytes - allocated, end.active_bytes - active, end.reserved_bytes - reserved
