"""Memory that ran out: what was asked for, what filled the device, and what would have made the difference."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshscope.analysis.allocations import Holdings, holdings
from meshscope.analysis.last_words import LastWords, last_words
from meshscope.analysis.memory import Category, memory
from meshscope.records import Failure, MemoryRecord
from meshscope.run import Run

LIMITED, FRAGMENTED, OTHERS, FULL, UNTOLD = "limited", "fragmented", "other processes", "full", "not told"
SNAPSHOT, WORDS = "the allocator's snapshot", "its last words"
MIB = 1 << 20


@dataclass(frozen=True)
class OutOfMemory:
    """One rank's failure. Bytes are None where nobody told them.

    ``cause``: LIMITED where the device had enough free, so a limit forbade it; FRAGMENTED where what was free came to
    what was asked for, and lay in pieces; OTHERS where it would have fitted but for other processes; FULL where it
    would not; UNTOLD where the figures are lacking. ``is_exact`` is false where the figures are rounded, or taken back
    from a later state. ``categories`` are those that the run had measured last.
    """

    rank: int
    device: int
    told_by: str
    times: int
    is_exact: bool
    is_host: bool = False
    asked_bytes: int | None = None
    capacity_bytes: int | None = None
    device_free_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    pool_free_bytes: int | None = None
    largest_free_bytes: int | None = None
    others_bytes: int | None = None
    is_expandable: bool = False
    holdings: Holdings | None = None
    categories: tuple[Category, ...] = ()

    @property
    def outside_bytes(self) -> int | None:
        """What the device had given to others than the pool: this process's context, and other processes."""
        known = (self.capacity_bytes, self.device_free_bytes, self.reserved_bytes)
        if any(value is None for value in known):
            return None
        capacity, free, reserved = (value or 0 for value in known)
        return max(capacity - free - reserved, 0)

    @property
    def cause(self) -> str:
        asked, free, pool_free = self.asked_bytes, self.device_free_bytes, self.pool_free_bytes
        if asked is None or free is None or self.is_host:
            return UNTOLD
        if free >= segment_bytes(asked):
            return LIMITED
        if pool_free is not None and pool_free + free >= asked and not self.is_expandable:
            return FRAGMENTED
        if self.others_bytes is not None and free + self.others_bytes >= segment_bytes(asked):
            return OTHERS
        return UNTOLD if pool_free is None else FULL


def segment_bytes(asked_bytes: int) -> int:
    """What torch's allocator asks the driver for to serve a request (``CUDACachingAllocator.cpp``, allocation size)."""
    if asked_bytes <= MIB:
        return 2 * MIB
    if asked_bytes < 10 * MIB:
        return 20 * MIB
    return -(-asked_bytes // (2 * MIB)) * 2 * MIB


def out_of_memory(run: Run) -> tuple[OutOfMemory, ...]:
    """By rank. A snapshot knows more than last words, so of a rank that left both it is the snapshot's."""
    told = [_snapshot(run, record, record.failure) for record in run.records
            if isinstance(record, MemoryRecord) and record.failure is not None]  # fmt: skip
    known = {one.rank for one in told if one.rank >= 0}
    for end in run.rank_ends:
        found = last_words(end.why, end.log_lines) if end.exit_code and end.rank not in known else None
        if found is not None:
            told.append(_words(run, end.rank, found))
    return tuple(sorted(told, key=lambda one: one.rank))


def _snapshot(run: Run, record: MemoryRecord, failure: Failure) -> OutOfMemory:
    found = OutOfMemory(
        rank=record.rank,
        device=record.device,
        told_by=SNAPSHOT,
        times=failure.times,
        is_exact=failure.is_newest,
        asked_bytes=failure.asked_bytes,
        device_free_bytes=failure.device_free_bytes,
        allocated_bytes=failure.allocated_bytes,
        reserved_bytes=failure.reserved_bytes,
        pool_free_bytes=failure.pool_free_bytes,
        largest_free_bytes=failure.largest_free_bytes,
        is_expandable=failure.is_expandable,
        holdings=holdings(failure.alive) if failure.alive is not None else None,
    )
    return replace(found, capacity_bytes=_capacity(run, record.device))


def _capacity(run: Run, device: int) -> int | None:
    """The device's memory by its sensor, where a log of it is among the files."""
    _, total_bytes = run.samples.series(f"gpu {device}", "memory_total_bytes")
    known = total_bytes[total_bytes > 0]
    return int(known[-1]) if len(known) else None


def _words(run: Run, rank: int, found: LastWords) -> OutOfMemory:
    measured = next((one for one in memory(run) if one.rank == rank and one.record is None), None)
    reserved, allocated = found.reserved_bytes, found.allocated_bytes
    return OutOfMemory(
        rank=rank,
        device=measured.device if measured else -1,
        told_by=WORDS,
        times=1,
        is_exact=False,
        is_host=found.is_host,
        asked_bytes=found.asked_bytes,
        capacity_bytes=found.capacity_bytes,
        device_free_bytes=found.device_free_bytes,
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        pool_free_bytes=reserved - allocated if reserved is not None and allocated is not None else None,
        others_bytes=found.others_bytes,
        categories=measured.categories if measured else (),
    )
