"""Snapshots of torch's CUDA allocator: what ``torch.cuda.memory._dump_snapshot`` pickles.

The segments are the state at the end, exact. The history (``device_traces``, a ring buffer) is what led there: its
calls carry the sizes that were asked for, before they were rounded up to blocks. What was held when it began is the end
less what it adds up to. Format: the docstring of ``torch.cuda.memory._snapshot``; torch 1.13 pickled the list of
segments alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from meshscope.errors import TraceError
from meshscope.readers.damage import AFTER_END
from meshscope.readers.memory_alive import Block, blocks
from meshscope.readers.memory_history import NO_HISTORY, History, histories
from meshscope.readers.memory_moments import End, moments
from meshscope.readers.memory_segments import State, states
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
_NO_CATEGORY = "an allocator's snapshot knows blocks, not what they are for"
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
    held = states(segments, len(content), dropped)
    past = histories(traces, len(content), dropped)
    standing = blocks(segments)
    is_expandable = _is_expandable(found)
    devices = sorted(held.keys() | past.keys())
    if not devices:
        raise TraceError(
            f"{path.name} is a snapshot of an allocator that held nothing.",
            hint="Dump it while the model is alive, after torch.cuda.memory._record_memory_history().",
        )
    rank, rank_from = rank_of(path)
    records = (
        _record(device, held.get(device, State()), past.get(device, NO_HISTORY), standing.get(device, []),
                is_expandable=is_expandable, is_cut=device >= told)
        for device in devices
    )  # fmt: skip
    return tuple(
        replace(record, source=path.name, rank=rank, rank_from=rank_from,
                counts=_counts(held, past, dropped, is_first=not at),
                is_complete=not isinstance(found, Unfinished),
                cannot_say=(*record.cannot_say, *behind))
        for at, record in enumerate(records)
    )  # fmt: skip


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


def _is_expandable(found: Any) -> bool:
    """Whether the settings let segments grow, whatever segments there are yet."""
    settings = found.get("allocator_settings") if isinstance(found, dict) else None
    return isinstance(settings, dict) and settings.get("expandable_segments") is True


def _record(
    device: int, held: State, changes: History, standing: list[Block], *, is_expandable: bool, is_cut: bool
) -> MemoryRecord:
    """``is_cut``: the newest calls are missing. What was held before the others cannot be told then, nor any peak."""
    start_bytes = _start_bytes(held, changes)
    peak_bytes = max(start_bytes + changes.peak_bytes, held.allocated)
    is_of_these = changes.read > 0 and start_bytes >= 0 and not is_cut
    has_time = changes.start_ns >= EARLIEST_UNIX_NS
    zero_ns = 0 if has_time else changes.start_ns
    end = End(
        blocks=standing,
        start_bytes=start_bytes,
        allocated_bytes=held.allocated,
        active_bytes=held.active,
        reserved_bytes=held.reserved,
        largest_free_bytes=held.largest_free,
        rounding_bytes=held.allocated - held.requested if held.has_requested else None,
        is_expandable=is_expandable or held.expandable > 0,
    )
    found = moments(end, NO_HISTORY if is_cut else changes, zero_ns)
    return MemoryRecord(
        kind=KIND,
        source="",
        device=device,
        start_ns=changes.start_ns - zero_ns,
        end_ns=changes.end_ns - zero_ns,
        has_unix_time=has_time,
        cannot_say=(*_doubts(held, changes, start_bytes, has_time=has_time, is_cut=is_cut), *found.doubts),
        peak_bytes=peak_bytes if is_of_these else None,
        peak_how="replayed" if is_of_these else "",
        end_bytes=held.allocated,
        reserved_bytes=held.reserved,
        preexisting_bytes=start_bytes if is_of_these else None,
        categories={} if is_cut else changes.annotated,
        figures=_figures(held),
        history=changes.figures if is_of_these else {},
        actions=changes.actions,
        allocations=changes.allocations(start_bytes, zero_ns) if is_of_these else None,
        alive=found.alive,
        failure=found.failure,
    )


def _start_bytes(held: State, changes: History) -> int:
    """What was allocated when the history began: what is allocated at its end, less what the calls add up to.

    Calls have sizes as asked for. Where those alone account for the end, nothing was held before: the rest is rounding.
    """
    if held.has_requested and changes.read and held.requested == changes.net_bytes:
        return 0
    return held.allocated - changes.net_bytes


def _figures(held: State) -> dict[str, int]:
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


def _doubts(held: State, changes: History, start_bytes: int, *, has_time: bool, is_cut: bool) -> list[Doubt]:
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


def _peak_doubts(held: State, changes: History, start_bytes: int) -> Iterator[Doubt]:
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


def _counts(held: dict[int, State], past: dict[int, History], dropped: Counter[str], *, is_first: bool) -> Counts:
    """Of the whole file, said once: blocks and calls."""
    if not is_first:
        return Counts()
    read = sum(state.blocks for state in held.values()) + sum(history.read for history in past.values())
    return Counts(read=read, dropped=dict(dropped))


RECORD_READER = RecordReader(format="torch memory snapshot", names=_ANY, sniff=sniff, read=read, called=".pickle, .pkl")
