"""What a trace itself recorded of an allocator: its total at every change within the traced windows."""

from __future__ import annotations

from dataclasses import dataclass

from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import counted, size

SOURCE = "the [memory] events of torch.profiler"
WINDOW_ONLY = "what the allocator held outside the traced windows, and by category, is not recorded"


@dataclass(frozen=True)
class TracedMemory:
    """One rank over all its windows: the allocator's total after the first and the last of ``changes``, and the most.

    On GPUs (``is_device``) it is all that the caching allocator had given out, so ``most_bytes`` is the peak of the
    windows, which that of the run may exceed. On the host it counts from the profiler's start, so it is no size.
    """

    rank: int
    is_device: bool
    changes: int
    first_bytes: int
    most_bytes: int
    last_bytes: int


def traced_memory(run: Run) -> tuple[TracedMemory, ...]:
    """By rank; empty where nothing was recorded (torch.profiler does with ``profile_memory=True``)."""
    ranks: dict[int, list[Window]] = {}
    for window in sorted(run.windows, key=lambda window: window.start_ns):
        if window.allocations is not None and len(window.allocations.total_bytes):
            ranks.setdefault(window.rank, []).append(window)
    return tuple(_rank(rank, ranks[rank]) for rank in sorted(ranks))


def _rank(rank: int, windows: list[Window]) -> TracedMemory:
    totals = [window.allocations.total_bytes for window in windows if window.allocations is not None]
    return TracedMemory(
        rank=rank,
        is_device=windows[-1].device_kind == "gpu",
        changes=sum(len(total) for total in totals),
        first_bytes=int(totals[0][0]),
        most_bytes=max(int(total.max()) for total in totals),
        last_bytes=int(totals[-1][-1]),
    )


def traced_memory_words(found: TracedMemory) -> str:
    """The totals, what they count, and why they are not the run's peak."""
    changes = counted(found.changes, "change")
    if found.is_device:
        return (
            f"rank {found.rank}'s allocator had given out {size(found.first_bytes)} after the first of {changes}, "
            f"{size(found.most_bytes)} at most and {size(found.last_bytes)} after the last ({SOURCE}): the peak of "
            "what was traced, which the run's may exceed"
        )
    return (
        f"rank {found.rank}'s host allocations since the profiler began came to {size(found.most_bytes)} at most and "
        f"{size(found.last_bytes)} after the last of {changes} ({SOURCE}): no peak, as what was held before is not "
        "counted"
    )
