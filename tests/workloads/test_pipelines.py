"""Pipelines: how the blocks of a model are cut into stages, and what several ranks of one slice see and count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from meshscope.analysis.pipeline import CHUNKS

Import = Callable[[str], ModuleType]


@pytest.mark.parametrize(
    ("preset", "stages", "schedule", "blocks"),
    [
        ("tiny", 2, "1f1b", [2, 2]),
        ("tiny", 3, "1f1b", [2, 1, 1]),
        ("tiny", 4, "gpipe", [1, 1, 1, 1]),
        ("tiny", 2, "interleaved", [1, 1, 1, 1]),
        # The output layer multiplies as much as 50304 / (12 · 768) = 5.5 blocks: it is the longest by itself.
        ("125m", 4, "1f1b", [4, 4, 4, 0]),
        ("125m", 4, "interleaved", [2, 2, 2, 2, 2, 1, 1, 0]),
        # 50304 / (12 · 2048) = 2.0 blocks.
        ("1.3b", 8, "1f1b", [4, 4, 3, 3, 3, 3, 3, 1]),
    ],
)
def test_the_slowest_stretch_is_as_short_as_whole_blocks_can_make_it(
    workload: Import, preset: str, stages: int, schedule: str, blocks: list[int]
) -> None:
    asked = replace(workload("options").PRESETS[preset], stages=stages, schedule=schedule)
    found = workload("pipelines").stretches(asked)
    assert [len(part) for part in found] == blocks
    assert [block for part in found for block in part] == list(range(asked.layers))


def test_meshscope_counts_as_many_stretches_on_a_rank_as_the_workload_makes(workload: Import) -> None:
    pipelines, tiny = workload("pipelines"), workload("options").PRESETS["tiny"]
    made = {name: pipelines.chunks(replace(tiny, schedule=name, stages=2)) // 2 for name in pipelines.SCHEDULES}
    assert made == CHUNKS


def test_all_ranks_are_stages_and_share_each_matrix_unless_told_otherwise(workload: Import) -> None:
    options = workload("options")
    assert options.settled(options.parse(["--schedule", "gpipe"]), 4).stages == 4
    assert options.settled(options.parse(["--schedule", "gpipe", "--stages", "2"]), 4).stages == 2
    assert options.settled(options.parse([]), 4, schedule="1f1b").schedule == "1f1b"
    assert options.settled(options.parse(["--spec", "tp"]), 4).tensor == 4
    assert options.settled(options.parse([]), 4) == options.PRESETS["tiny"]


def test_ranks_that_share_a_slice_see_the_same_samples_and_count_them_once(workload: Import) -> None:
    options, batches = workload("options"), workload("batches")
    staged = options.parse(["--schedule", "1f1b", "--stages", "4", "--accumulate", "4"])
    whole = batches.micro_batches(replace(staged, stages=1), 3)[0]
    assert all(np.array_equal(batches.micro_batches(staged, 3, rank, 4)[0], whole) for rank in range(4))
    assert [options.counted_samples(staged, rank, 4) for rank in range(4)] == [0, 0, 0, 8]
    split = options.parse(["--tensor", "2"])
    drawn = [batches.micro_batches(split, 3, rank, 4)[0] for rank in range(4)]
    assert np.array_equal(drawn[0], drawn[1])
    assert np.array_equal(drawn[2], drawn[3])
    assert np.array_equal(np.concatenate(drawn[::2], axis=1), batches.micro_batches(split, 3)[0])
    assert [options.counted_samples(split, rank, 4) for rank in range(4)] == [0, 4, 0, 4]
    assert [options.counted_samples(options.PRESETS["tiny"], rank, 4) for rank in range(4)] == [2, 2, 2, 2]
