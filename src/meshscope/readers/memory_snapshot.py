"""Snapshots of torch's CUDA allocator: what ``torch.cuda.memory._dump_snapshot`` pickles.

The segments are the state at the end, exact. The history (``device_traces``, a ring buffer) is what led there: its
calls carry the sizes that were asked for, before they were rounded up to blocks. What was held when it began is the end
less what it adds up to. Format: the docstring of ``torch.cuda.memory._snapshot``; torch 1.13 pickled the list of
segments alone.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from meshscope.errors import TraceError
from meshscope.readers.damage import AFTER_END
from meshscope.readers.memory_history import NO_HISTORY, History, histories
from meshscope.readers.memory_snapshot_cut import kept
from meshscope.readers.pickles import PICKLE, Unfinished, cut_short, value_and_end
from meshscope.readers.records import RecordReader, rank_of, whole
from meshscope.readers.stream import BAD_TRAILER
from meshscope.readers.windows import EARLIEST_UNIX_NS, NO_ABSOLUTE_TIME
from meshscope.records import Doubt, MemoryRecord, Record
from meshscope.spans import Counts
from meshscope.units import counted, size

KIND = "snapshot of torch's CUDA allocator"
_ANY = re.compile(r"\.(pickle|pkl)(\.gz)?$", re.IGNORECASE)
# Protocols before 2 have no mark of their own: they begin with a dict or a list.
_BEGINNINGS = (PICKLE, b"(d", b"(l", b"}q", b"]q")
_MARK = re.compile(rb"segments|device_traces|total_size|segment_type")
_LARGEST = 1 << 50
_NO_CATEGORY = "an allocator's snapshot knows blocks, not what they are for"
_ACTIVE = "active"
_PEAK = "memory.peak_bytes"
CUT = "the file ends inside the snapshot"
_NOTHING_CUT = 1 << 30


def sniff(head: bytes) -> bool:
    """A pickle that names what a snapshot has from its beginning on; a flight recorder's names other things."""
    return head.startswith(_BEGINNINGS) and _MARK.search(head) is not None


def read(path: Path) -> tuple[Record, ...]:
    """A record for every device that the process held memory on.

    Of a file that ends inside a history, the state at the end is exact, and so are histories before the cut.
    """
    content, packed_why = whole(path)
    found, end = value_and_end(content, path.name)
    dropped: Counter[str] = Counter({BAD_TRAILER: 1} if packed_why else {})
    behind = _behind(content[end:], dropped)
    told = _NOTHING_CUT
    if isinstance(found, Unfinished):
        rest = kept(found)
        if rest is None:
            raise cut_short(path.name)
        segments, traces, told = rest.segments, rest.traces, rest.whole
        dropped = Counter({CUT: 1})
    else:
        segments, traces = _parts(found, path)
    states = _states(segments, len(content), dropped)
    past = histories(traces, len(content), dropped)
    devices = sorted(states.keys() | past.keys())
    if not devices:
        raise TraceError(
            f"{path.name} is a snapshot of an allocator that held nothing.",
            hint="Dump it while the model is alive, after torch.cuda.memory._record_memory_history().",
        )
    rank, rank_from = rank_of(path)
    counts = _counts(states, past, dropped)
    records = (_record(device, states.get(device), past.get(device), is_cut=device >= told) for device in devices)
    return tuple(
        replace(
            record,
            source=path.name,
            rank=rank,
            rank_from=rank_from,
            counts=Counts() if at else counts,
            is_complete=not isinstance(found, Unfinished),
            cannot_say=(*record.cannot_say, *behind),
        )
        for at, record in enumerate(records)
    )


def _behind(rest: bytes, dropped: Counter[str]) -> tuple[Doubt, ...]:
    """What is told of text behind the snapshot, which is counted."""
    if not rest.strip(b"\0 \r\n"):
        return ()
    dropped[AFTER_END] = 1
    if not rest.startswith(_BEGINNINGS):
        return ()
    why = "another snapshot stands behind the first, which alone is told of: dump each to a path of its own"
    return (("memory", why),)


def _parts(found: Any, path: Path) -> tuple[list[Any], list[Any]]:
    """The segments, and the histories by device."""
    if isinstance(found, list) and found and isinstance(found[0], dict) and "total_size" in found[0]:
        return found, []
    segments = found.get("segments") if isinstance(found, dict) else None
    if not isinstance(segments, list):
        raise TraceError(
            f"{path.name} is a pickle, but neither a snapshot of torch's allocator nor a flight recorder's dump.",
            hint="Give what torch.cuda.memory._dump_snapshot wrote.",
        )
    traces = found.get("device_traces")
    return segments, traces if isinstance(traces, list) else []


@dataclass
class _State:
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


def _states(segments: list[Any], most: int, dropped: Counter[str]) -> dict[int, _State]:
    """By device. ``most`` is how many blocks a file of its size can hold: more are one list referred to many times."""
    states: dict[int, _State] = defaultdict(_State)
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
        _add(states[_device(segment)], segment, sizes, listed, dropped)
    return dict(states)


def _add(state: _State, segment: dict[str, Any], sizes: list[int], listed: list[Any], dropped: Counter[str]) -> None:
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


def _device(segment: dict[str, Any]) -> int:
    device = segment.get("device", 0)
    return device if type(device) is int and 0 <= device < 2**15 else 0


def _record(device: int, state: _State | None, past: History | None, *, is_cut: bool) -> MemoryRecord:
    """``is_cut``: the newest calls are missing. What was held before the others cannot be told then, nor any peak."""
    held = state or _State()
    changes = past or NO_HISTORY
    start_bytes = _start_bytes(held, changes)
    peak_bytes = max(start_bytes + changes.peak_bytes, held.allocated)
    past = past if start_bytes >= 0 and not is_cut else None
    annotated = {} if is_cut else changes.annotated
    has_time = changes.start_ns >= EARLIEST_UNIX_NS
    zero_ns = 0 if has_time else changes.start_ns
    return MemoryRecord(
        kind=KIND,
        source="",
        device=device,
        start_ns=changes.start_ns - zero_ns,
        end_ns=changes.end_ns - zero_ns,
        has_unix_time=has_time,
        cannot_say=tuple(_doubts(held, changes, start_bytes, has_time=has_time, is_cut=is_cut)),
        peak_bytes=peak_bytes if past else None,
        peak_how="replayed" if past else "",
        end_bytes=held.allocated,
        reserved_bytes=held.reserved,
        preexisting_bytes=start_bytes if past else None,
        categories=annotated,
        figures=_figures(held),
        history=changes.figures if past else {},
        actions=changes.actions,
        allocations=changes.allocations(start_bytes, zero_ns) if past else None,
    )


def _start_bytes(held: _State, changes: History) -> int:
    """What was allocated when the history began: what is allocated at its end, less what the calls add up to.

    Calls have sizes as asked for. Where those alone account for the end, nothing was held before: the rest is rounding.
    """
    if held.has_requested and changes.read and held.requested == changes.net_bytes:
        return 0
    return held.allocated - changes.net_bytes


def _figures(held: _State) -> dict[str, int]:
    """What the segments hold. ``fragmented``: reserved and not allocated, whatever part of it could be given back."""
    figures = {
        "allocated_bytes": held.allocated,
        "active_bytes": held.active,
        "requested_bytes": held.requested,
        "free_bytes": held.reserved - held.allocated,
        "largest_free_bytes": held.largest_free,
        "inactive_split_bytes": held.inactive_split,
        "unused_segment_bytes": held.unused_segments,
        "pending_free_bytes": held.pending_free,
        "expandable_bytes": held.expandable,
        "private_pool_bytes": held.private_pools,
        "segments": held.segments,
        "blocks": held.blocks,
    }
    return {name: value for name, value in figures.items() if held.has_requested or name != "requested_bytes"}


def _doubts(held: _State, changes: History, start_bytes: int, *, has_time: bool, is_cut: bool) -> list[Doubt]:
    said: list[Doubt] = [("breakdown", f"a {KIND} holds no device work")]
    said += [(_PEAK, _cut_why(changes))] if is_cut else _peak_doubts(held, changes, start_bytes)
    if changes.read and not has_time:
        said.append(NO_ABSOLUTE_TIME)
    if not changes.annotated or is_cut:
        said.append(("memory.categories", _cut_why(changes) if is_cut and changes.annotated else _NO_CATEGORY))
    return said


def _cut_why(changes: History) -> str:
    if not changes.read:
        return "the file ends before the history of this device, if there is one"
    return (
        f"the file ends inside this device's history: {counted(changes.read, 'call')}, the oldest, are read and the "
        "newest are missing, so what was held before them cannot be told"
    )


def _peak_doubts(held: _State, changes: History, start_bytes: int) -> Iterator[Doubt]:
    what = _PEAK
    if not changes.read:
        yield what, "the snapshot holds no history: torch.cuda.memory._record_memory_history() was not called before it"
        return
    if start_bytes < 0:
        yield what, "the history adds up to more than the segments hold, so it is not of them"
        return
    if start_bytes > 0 and held.has_requested:
        yield what, f"the history begins with {size(start_bytes)} held; the process may have held more before"
    elif start_bytes > 0:
        yield what, f"of {size(start_bytes)} the history does not tell whether they were held before it or are rounding"
    rounding_bytes = held.allocated - held.requested
    if held.has_requested and rounding_bytes > 0:
        at_end = f"{size(rounding_bytes)} in all at the end"
        yield what, f"blocks are rounded up ({at_end}), and the history has sizes as asked for: what it adds is less"


def _counts(states: dict[int, _State], past: dict[int, History], dropped: Counter[str]) -> Counts:
    """Of the whole file: blocks and calls."""
    read = sum(state.blocks for state in states.values()) + sum(history.read for history in past.values())
    return Counts(read=read, dropped=dict(dropped))


RECORD_READER = RecordReader(format="torch memory snapshot", names=_ANY, sniff=sniff, read=read, called=".pickle, .pkl")
