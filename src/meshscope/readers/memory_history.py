"""The history in a snapshot of torch's allocator: calls of one device, replayed.

``alloc`` and ``free_requested`` change what is allocated; ``free_completed`` ends what a stream still used after its
free (the allocator calls that active); ``segment_alloc``, ``segment_map``, ``segment_unmap`` and ``segment_free``
change what is reserved; ``oom`` is an allocation that failed; ``snapshot`` marks where one was taken.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from meshscope.errors import TraceError
from meshscope.spans import Allocations

Ints = npt.NDArray[np.int64]

_ALLOCATED = {"alloc": 1, "free_requested": -1}
_ACTIVE = {"alloc": 1, "free_completed": -1}
_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_unmap": -1, "segment_free": -1}
_LARGEST = 1 << 50


@dataclass(frozen=True, eq=False)
class History:
    """``net`` is what the calls add up to, ``peak`` the most above the beginning on the way. ``annotated`` are the
    bytes at the peak by ``user_metadata``, where the program set it. Times are unix ns; ``time_ns`` and ``held_bytes``
    (what is allocated beyond the beginning) have shape (n,). ``calls`` are the calls themselves, ``frees`` the action
    that ends an allocation among them, and ``peak_call`` the number of the one after which the most was allocated (−1:
    the beginning).
    """

    net_bytes: int = 0
    peak_bytes: int = 0
    start_ns: int = 0
    end_ns: int = 0
    read: int = 0
    time_ns: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    held_bytes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    actions: dict[str, int] = field(default_factory=dict)
    figures: dict[str, int] = field(default_factory=dict)
    annotated: dict[str, int] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    frees: str = "free_requested"
    peak_call: int = -1

    def allocations(self, start_bytes: int, zero_ns: int) -> Allocations:
        """What is allocated over time, from what was held at the beginning on."""
        return Allocations(self.time_ns - zero_ns, self.held_bytes + start_bytes)


NO_HISTORY = History()


def histories(traces: list[Any], most: int, dropped: Counter[str]) -> dict[int, History]:
    """By device: a list of devices' lists of calls. ``most`` is how many calls a file of its size can hold."""
    if sum(len(calls) for calls in traces if isinstance(calls, list)) > most:
        raise TraceError("This snapshot refers to the same calls over and over.", hint="It is no real snapshot.")
    return {
        device: _history(kept)
        for device, calls in enumerate(traces)
        if isinstance(calls, list) and (kept := _usable(calls, dropped))
    }


def _usable(calls: list[Any], dropped: Counter[str]) -> list[dict[str, Any]]:
    kept = [call for call in calls if isinstance(call, dict) and _is_call(call)]
    if len(kept) < len(calls):
        dropped["call of the allocator without an action and a size"] += len(calls) - len(kept)
    return kept


def _is_call(call: dict[str, Any]) -> bool:
    size_bytes = call.get("size", 0)
    time_us = call.get("time_us", 0)
    is_sized = type(size_bytes) is int and 0 <= size_bytes < _LARGEST
    return isinstance(call.get("action"), str) and is_sized and type(time_us) is int and 0 <= time_us < 1 << 53


def _history(calls: list[dict[str, Any]]) -> History:
    actions = [call["action"] for call in calls]
    size_bytes = np.array([call.get("size", 0) for call in calls], dtype=np.int64)
    time_ns = np.array([call.get("time_us", 0) for call in calls], dtype=np.int64) * 1000
    if float(size_bytes.astype(np.float64).sum()) > 2**62:
        raise TraceError("The sizes in this snapshot cannot be.", hint="It is no real snapshot.")
    counted = Counter(actions)
    has_completed_alone = _has_completed_alone(calls, counted)
    allocated = _running(actions, size_bytes, _ACTIVE if has_completed_alone else _ALLOCATED)
    active, reserved = _running(actions, size_bytes, _ACTIVE), _running(actions, size_bytes, _RESERVED)
    peak_bytes = max(0, int(allocated.max()))
    known = time_ns[time_ns > 0]
    figures = {
        "calls": len(calls),
        "net_alloc_bytes": int(allocated[-1]),
        "peak_net_alloc_bytes": peak_bytes,
        "net_active_bytes": int(active[-1]),
        "peak_net_active_bytes": max(0, int(active.max())),
        "net_segment_bytes": int(reserved[-1]),
        "peak_net_segment_bytes": max(0, int(reserved.max())),
        "first_time_ns": int(known.min()) if len(known) else 0,
        "last_time_ns": int(known.max()) if len(known) else 0,
    }
    failed = [call.get("size", 0) for call in calls if call["action"] == "oom"]
    if failed:
        figures["largest_failed_bytes"] = max(failed)
    changes = np.flatnonzero(np.diff(allocated, prepend=0)) if len(known) == len(calls) else np.empty(0, dtype=np.int64)
    return History(
        net_bytes=int(allocated[-1]),
        peak_bytes=peak_bytes,
        start_ns=figures["first_time_ns"],
        end_ns=figures["last_time_ns"],
        read=len(calls),
        time_ns=time_ns[changes],
        held_bytes=allocated[changes],
        actions=dict(sorted(counted.items())),
        figures=figures,
        annotated=_annotated(calls, int(allocated.argmax()) if peak_bytes else -1),
        calls=calls,
        frees="free_completed" if has_completed_alone else "free_requested",
        peak_call=int(allocated.argmax()) if peak_bytes else -1,
    )


def _has_completed_alone(calls: list[dict[str, Any]], counted: Counter[str]) -> bool:
    """Whether only completions of frees are recorded. One whose request the ring buffer has lost does not say so."""
    if "free_requested" in counted or "free_completed" not in counted:
        return False
    made = set()
    for call in calls:
        address = call.get("addr")
        if call["action"] == "alloc" and isinstance(address, int):
            made.add(address)
        elif call["action"] == "free_completed" and address in made:
            return True
    return False


def net_after(calls: list[dict[str, Any]], *, has_requests: bool) -> tuple[int, int, int]:
    """What calls add up to: (allocated, active, reserved) bytes. Without requests, a free ends both of the former."""
    signs = (_ALLOCATED if has_requests else _ACTIVE, _ACTIVE, _RESERVED)
    added = [sum(sign.get(call["action"], 0) * call.get("size", 0) for call in calls) for sign in signs]
    return added[0], added[1], added[2]


def _running(actions: list[str], size_bytes: Ints, signs: dict[str, int]) -> Ints:
    """What some actions have added up to after each call, shape (n,)."""
    sign = np.fromiter((signs.get(action, 0) for action in actions), dtype=np.int64, count=len(actions))
    return np.cumsum(sign * size_bytes)


def _annotated(calls: list[dict[str, Any]], last: int) -> dict[str, int]:
    """Bytes that are alive after call number ``last``, by the program's own words; empty where it said none."""
    if not any(isinstance(call.get("user_metadata"), str) and call["user_metadata"] for call in calls):
        return {}
    alive: dict[Any, tuple[str, int]] = {}
    for call in calls[: last + 1]:
        address = call.get("addr")
        if type(address) is not int:
            continue
        if call["action"] == "alloc":
            said = call.get("user_metadata")
            alive[address] = (said if isinstance(said, str) and said else "not annotated", call.get("size", 0))
        elif call["action"] == "free_requested":
            alive.pop(address, None)
    totals: Counter[str] = Counter()
    for said, size_bytes in alive.values():
        totals[said] += size_bytes
    return dict(totals)
