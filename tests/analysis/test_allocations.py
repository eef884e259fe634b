"""What was held at a moment, added up by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from meshscope.analysis.allocations import GIB, MIB, NO_STACK, OLDER, holdings
from meshscope.records import STEP_PARTS, Alive

Row = tuple[int, str, str, bool]


def alive(rows: Sequence[Row], *, rounding_bytes: int = 0, notes: Sequence[str] = ()) -> Alive:
    """Rows of (bytes, site, part of the step, is older), the largest first."""
    sites = tuple(dict.fromkeys(site for _, site, _, _ in rows if site))
    said = tuple(dict.fromkeys(note for note in notes if note))
    return Alive(
        moment="peak",
        time_ns=5,
        size_bytes=np.array([size for size, _, _, _ in rows], dtype=np.int64),
        site=np.array([sites.index(site) if site else -1 for _, site, _, _ in rows], dtype=np.int32),
        note=np.array([said.index(note) if note else -1 for note in notes or [""] * len(rows)], dtype=np.int32),
        part=np.array([STEP_PARTS.index(part) if part else -1 for _, _, part, _ in rows], dtype=np.int8),
        is_older=np.array([is_older for _, _, _, is_older in rows], dtype=np.bool_),
        sites=sites,
        notes=said,
        rounding_bytes=rounding_bytes,
    )


ROWS: tuple[Row, ...] = (
    (2 * GIB, "gpt/model.py:5 forward", "forward", False),
    (GIB, "gpt/model.py:5 forward", "forward", False),
    (512 * MIB, "", "", True),
    (400 * MIB, "train.py:9 main", "optimizer", False),
    (100 * MIB, "", "", False),
)
TOTAL = 4096 * MIB


def test_every_allocation_counts_once_in_each_grouping_and_rounding_is_in_the_whole() -> None:
    found = holdings(alive(ROWS, rounding_bytes=12 * MIB))
    assert (found.total_bytes, found.count, found.unplaced_bytes) == (TOTAL, 5, 612 * MIB)
    assert [(group.name, group.count, group.size_bytes) for group in found.sites] == [
        ("gpt/model.py:5 forward", 2, 3 * GIB), (OLDER, 1, 512 * MIB), ("train.py:9 main", 1, 400 * MIB),
        (NO_STACK, 1, 100 * MIB),
    ]  # fmt: skip
    assert found.sites[0].frac == pytest.approx(0.75)
    assert [(group.name, group.size_bytes) for group in found.parts] == [
        ("forward", 3 * GIB), ("not told", 612 * MIB), ("optimizer", 400 * MIB),
    ]  # fmt: skip
    for groups in (found.sites, found.parts, found.classes):
        assert sum(group.size_bytes for group in groups) == TOTAL - 12 * MIB


def test_classes_of_size_hold_their_upper_bound() -> None:
    found = holdings(alive(ROWS))
    assert [(group.name, group.count) for group in found.classes] == [
        ("10 to 100 MiB", 1), ("100 MiB to 1 GiB", 3), ("over 1 GiB", 1),
    ]  # fmt: skip


def test_the_largest_are_told_one_by_one_and_the_programs_words_set_sites_apart() -> None:
    found = holdings(alive(ROWS[:2], notes=["weights", ""]), singles=1)
    assert [(group.name, group.size_bytes) for group in found.largest] == [
        ("gpt/model.py:5 forward (weights)", 2 * GIB)
    ]
    assert len(found.sites) == 2


def test_nothing_alive_is_no_share() -> None:
    found = holdings(alive(()))
    assert (found.total_bytes, found.sites, found.classes, found.largest) == (0, (), (), ())
