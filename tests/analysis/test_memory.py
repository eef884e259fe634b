"""Memory by category, and the peak by whoever saw one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from drawn import run, windows

from meshscope.analysis.memory import memory
from meshscope.recording.entries import MemoryMeasured
from meshscope.spans import Allocations

SIZES = {"temporaries": 5, "parameters": 10, "optimizer": 20}


def measured(t_ns: int, *, rank: int = 0, sizes: dict[str, int] | None = None, **about: object) -> MemoryMeasured:
    sizes = SIZES if sizes is None else sizes
    how = dict.fromkeys(sizes, "exact")
    return MemoryMeasured(
        t_ns=t_ns, rank=rank, device=rank, step=t_ns, source="trees", categories=sizes, how=how, **about  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_newest_measurement_of_each_rank_counts_in_the_usual_order() -> None:
    found = memory(run([measured(1, rank=1), measured(2, sizes={"parameters": 1}), measured(3), measured(1)]))
    assert [(rank.rank, rank.step) for rank in found] == [(0, 3), (1, 1)]
    assert [category.name for category in found[0].categories] == ["parameters", "optimizer", "temporaries"]


def test_the_peak_is_the_newest_that_is_known() -> None:
    (found,) = memory(run([measured(1, peak_bytes=99, peak_how="measured"), measured(2)]))
    assert (found.peak_bytes, found.peak_how) == (99, "measured")


def test_a_traced_window_gives_a_cpu_rank_its_peak() -> None:
    (window,) = windows("0 compute ##", device_kind="cpu")
    traced = replace(window, allocations=Allocations(np.array([1, 2, 3]), np.array([5, 70, 2])))
    (found,) = memory(run([measured(1)], windows=[traced]))
    assert (found.peak_bytes, found.peak_how) == (100, "derived")


def test_no_peak_is_made_up_without_what_lives_from_step_to_step() -> None:
    (window,) = windows("0 compute ##", device_kind="cpu")
    traced = replace(window, allocations=Allocations(np.array([1]), np.array([5])))
    (found,) = memory(run([measured(1, sizes={"parameters": 10})], windows=[traced]))
    assert found.peak_bytes is None


def test_what_the_allocator_does_not_tell_is_none() -> None:
    (found,) = memory(run([measured(1)]))
    assert (found.peak_bytes, found.pool_bytes, found.in_use_bytes) == (None, None, None)


def test_nothing_measured_is_no_answer() -> None:
    assert memory(run()) == ()
