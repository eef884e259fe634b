"""What a device held at one moment, by where it was made, by the part of the step, and by size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope.records import STEP_PARTS, Alive
from meshscope.units import ratio

MIB, GIB = 1 << 20, 1 << 30
# torch serves up to 1 MiB from its small pool, and from 10 MiB on a request gets a segment of its own.
CLASSES = (
    ("up to 1 MiB", MIB),
    ("1 to 10 MiB", 10 * MIB),
    ("10 to 100 MiB", 100 * MIB),
    ("100 MiB to 1 GiB", GIB),
    ("over 1 GiB", 1 << 62),
)
OLDER = "made before the history began: no stack"
NO_STACK = "no stack was recorded"
ROUNDING = "blocks are larger than asked for"

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """``frac`` is the share of all that was held at the moment, rounding included."""

    name: str
    count: int
    size_bytes: int
    frac: float


@dataclass(frozen=True)
class Holdings:
    """``total_bytes`` is all that was held at ``moment`` (``peak``, ``end`` or ``failure``): ``count`` allocations and
    the ``rounding_bytes`` by which their blocks are larger.

    ``sites`` and ``parts`` are the largest first, ``classes`` by size; each of the three holds every allocation once.
    ``largest`` are single allocations. ``unplaced_bytes`` are those without a stack.
    """

    moment: str
    time_ns: int
    total_bytes: int
    count: int
    rounding_bytes: int
    unplaced_bytes: int
    sites: tuple[Group, ...]
    parts: tuple[Group, ...]
    classes: tuple[Group, ...]
    largest: tuple[Group, ...]


def holdings(alive: Alive, singles: int = 5) -> Holdings:
    """``singles`` is how many single allocations are told."""
    total_bytes = alive.total_bytes
    names = [_name(alive, number) for number in range(len(alive.size_bytes))]
    return Holdings(
        moment=alive.moment,
        time_ns=alive.time_ns,
        total_bytes=total_bytes,
        count=len(alive.size_bytes),
        rounding_bytes=alive.rounding_bytes,
        unplaced_bytes=int(alive.size_bytes[alive.site < 0].sum()),
        sites=_grouped(names, alive.size_bytes, total_bytes),
        parts=_grouped([_part(alive, number) for number in range(len(names))], alive.size_bytes, total_bytes),
        classes=_classes(alive.size_bytes, total_bytes),
        largest=tuple(
            Group(names[at], 1, int(alive.size_bytes[at]), ratio(int(alive.size_bytes[at]), total_bytes))
            for at in range(min(singles, len(names)))
        ),
    )


def _name(alive: Alive, at: int) -> str:
    site, note = int(alive.site[at]), int(alive.note[at])
    words = alive.sites[site] if site >= 0 else OLDER if alive.is_older[at] else NO_STACK
    return f"{words} ({alive.notes[note]})" if note >= 0 else words


def _part(alive: Alive, at: int) -> str:
    part = int(alive.part[at])
    return STEP_PARTS[part] if part >= 0 else "not told"


def _grouped(names: list[str], size_bytes: Ints, total_bytes: int) -> tuple[Group, ...]:
    found: dict[str, list[int]] = {}
    for name, size in zip(names, size_bytes.tolist(), strict=True):
        found.setdefault(name, []).append(size)
    groups = (Group(name, len(sizes), sum(sizes), ratio(sum(sizes), total_bytes)) for name, sizes in found.items())
    return tuple(sorted(groups, key=lambda group: (-group.size_bytes, group.name)))


def _classes(size_bytes: Ints, total_bytes: int) -> tuple[Group, ...]:
    limits = np.array([limit for _, limit in CLASSES], dtype=np.int64)
    number = np.searchsorted(limits, size_bytes, side="left")
    sums = [int(size_bytes[number == at].sum()) for at in range(len(CLASSES))]
    counts = np.bincount(number, minlength=len(CLASSES)).tolist()
    return tuple(
        Group(name, count, held, ratio(held, total_bytes))
        for (name, _), count, held in zip(CLASSES, counts, sums, strict=True)
        if count
    )
