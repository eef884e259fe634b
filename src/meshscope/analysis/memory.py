"""Memory by category and rank, and the peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.analysis.parts import per_run
from meshscope.recording.entries import MemoryMeasured
from meshscope.records import MemoryRecord
from meshscope.run import Run
from meshscope.spans import Window

CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "temporaries")
LASTING = ("parameters", "optimizer")
_PLACE = {name: place for place, name in enumerate(CATEGORIES)}


@dataclass(frozen=True)
class Category:
    """``how``: exact, measured, derived or compiler (see ``recording.entries.MemoryMeasured``)."""

    name: str
    size_bytes: int
    how: str


@dataclass(frozen=True)
class RankMemory:
    """The newest measurement of one rank. ``peak_bytes``, ``pool_bytes``, ``in_use_bytes`` are None where unknown.

    ``peak_how`` says how the peak was come by; ``source`` names the instrument in words. ``record`` is the file that
    told all of it, None for what a recording measured; then ``step`` is −1, ``in_use_bytes`` what was held at the
    record's end, and the categories are those at the peak. ``limit_bytes`` is what the allocator may take at most,
    ``largest_free_bytes`` the largest block that it could hand out, ``capacity_bytes`` the device's whole memory.
    """

    rank: int
    device: int
    step: int
    source: str
    categories: tuple[Category, ...]
    peak_bytes: int | None
    peak_how: str
    pool_bytes: int | None
    in_use_bytes: int | None
    record: MemoryRecord | None = None
    limit_bytes: int | None = None
    largest_free_bytes: int | None = None
    capacity_bytes: int | None = None


@per_run
def memory(run: Run) -> tuple[RankMemory, ...]:
    """By rank; empty while nothing was measured. What files of an allocator told comes after what was measured.

    Categories are those of the newest measurement. The peak is the newest that is known, since not every
    measurement sees one. Where none does, a CPU rank's is derived: what lives from step to step (exact, by the
    framework's trees) plus the most that the allocator grew beyond its start in a window that traced it.
    """
    newest: dict[int, list[MemoryMeasured]] = {}
    for entry in run.memory:
        newest.setdefault(entry.rank, []).append(entry)
    told = (_recorded(record) for record in run.records if isinstance(record, MemoryRecord))
    windows: dict[int, list[Window]] = {}
    for window in run.windows:
        windows.setdefault(window.rank, []).append(window)
    return (*(_rank(newest[rank], windows.get(rank, [])) for rank in sorted(newest)), *told)


def held_bytes(record: MemoryRecord, slices: int) -> npt.NDArray[np.float64]:
    """The most that was held in each of ``slices`` equal parts of the record's time; empty without a history."""
    traced = record.allocations
    if traced is None or not len(traced.time_ns) or slices <= 0:
        return np.empty(0)
    first_ns, last_ns = int(traced.time_ns[0]), int(traced.time_ns[-1])
    begin_ns = np.linspace(first_ns, max(last_ns, first_ns + 1), slices, endpoint=False)
    # What a part begins with is what the last change before it left.
    before = np.maximum(np.searchsorted(traced.time_ns, begin_ns, side="right") - 1, 0)
    inside: npt.NDArray[np.float64] = np.maximum.reduceat(traced.total_bytes, before).astype(np.float64)
    return inside


def _recorded(record: MemoryRecord) -> RankMemory:
    names = sorted(record.categories, key=lambda name: (_PLACE.get(name, len(_PLACE)), -record.categories[name], name))
    return RankMemory(
        rank=record.rank,
        device=record.device,
        step=-1,
        source=record.kind,
        categories=tuple(Category(name, record.categories[name], "measured") for name in names),
        peak_bytes=record.peak_bytes,
        peak_how=record.peak_how,
        pool_bytes=record.reserved_bytes,
        in_use_bytes=record.end_bytes,
        record=record,
        largest_free_bytes=record.figures.get("largest_free_bytes"),
    )


def _rank(entries: list[MemoryMeasured], windows: list[Window]) -> RankMemory:
    last = entries[-1]
    seen = next((entry for entry in reversed(entries) if entry.peak_bytes >= 0), None)
    peak_bytes, peak_how = (seen.peak_bytes, seen.peak_how) if seen else _derived(last, windows)
    return RankMemory(
        rank=last.rank,
        device=last.device,
        step=last.step,
        source=last.source,
        categories=tuple(_categories(last)),
        peak_bytes=peak_bytes,
        peak_how=peak_how,
        pool_bytes=_told(last.pool_bytes),
        in_use_bytes=_told(last.in_use_bytes),
        limit_bytes=_told(last.limit_bytes),
        largest_free_bytes=_told(last.largest_free_bytes),
        capacity_bytes=_told(last.capacity_bytes),
    )


def _told(value_bytes: int) -> int | None:
    return value_bytes if value_bytes >= 0 else None


def _categories(entry: MemoryMeasured) -> list[Category]:
    names = sorted(entry.categories, key=lambda name: (_PLACE.get(name, len(_PLACE)), name))
    return [Category(name, entry.categories[name], entry.how.get(name, "")) for name in names]


def _derived(entry: MemoryMeasured, windows: list[Window]) -> tuple[int | None, str]:
    lasting = [entry.categories.get(name) for name in LASTING]
    growths = [growth_bytes(window) for window in windows]
    most_bytes = max((growth for growth in growths if growth is not None), default=None)
    if most_bytes is None or None in lasting:
        return None, ""
    return sum(size for size in lasting if size is not None) + most_bytes, "derived"


def growth_bytes(window: Window) -> int | None:
    """The most that a CPU rank's allocator grew beyond its start in a window; None where that was not traced."""
    traced = window.allocations
    if traced is None or window.device_kind != "cpu" or not len(traced.total_bytes):
        return None
    return max(0, int(traced.total_bytes.max()))
