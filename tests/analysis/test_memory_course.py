"""Memory by category over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from drawn import run

from meshscope.analysis.memory import memory
from meshscope.analysis.memory_course import Moment, course
from meshscope.recording.entries import MemoryMeasured
from meshscope.records import MemoryRecord
from meshscope.spans import Allocations

UNIX_NS = 1_783_874_651_000_000_001


def measured(t_ns: int, rank: int, parameters: int, in_use_bytes: int = -1) -> MemoryMeasured:
    return MemoryMeasured(
        t_ns=t_ns, rank=rank, device=rank, step=t_ns // 10, source="trees", categories={"parameters": parameters},
        how={"parameters": "exact"}, in_use_bytes=in_use_bytes,
    )  # fmt: skip


def test_every_measurement_of_the_rank_is_a_moment() -> None:
    made = run([measured(10, 0, 5), measured(20, 1, 6), measured(30, 0, 7, 99)])
    assert course(made, memory(made)[0]) == (
        Moment(10, 1, None, {"parameters": 5}), Moment(30, 3, 99, {"parameters": 7}),
    )  # fmt: skip


def test_of_many_measurements_the_first_and_the_last_stay() -> None:
    made = run([measured(10 * at, 0, at) for at in range(1, 101)])
    found = course(made, memory(made)[0], points=5)
    assert [moment.t_ns for moment in found] == [10, 250, 500, 750, 1000]


def test_of_a_history_the_fullest_moment_of_each_part_is_told_with_its_categories() -> None:
    """Two parts of 50 ns: 9 is the most in the first, 8 in the second."""
    times = UNIX_NS + np.array([0, 10, 49, 60, 99], dtype=np.int64)
    held = {"parameters": np.array([3, 3, 3, 3, 3]), "activations": np.array([0, 6, 2, 5, 1])}
    record = MemoryRecord(
        kind="timeline", source="t", rank=0, allocations=Allocations(times, held["parameters"] + held["activations"]),
        category_bytes=held,
    )  # fmt: skip
    made = replace(run(strategy=""), records=(record,))
    assert course(made, memory(made)[0], points=2) == (
        Moment(UNIX_NS + 10, -1, 9, {"parameters": 3, "activations": 6}),
        Moment(UNIX_NS + 60, -1, 8, {"parameters": 3, "activations": 5}),
    )


def test_a_snapshot_without_a_history_has_no_course() -> None:
    made = replace(run(strategy=""), records=(MemoryRecord(kind="snapshot", source="s", rank=0),))
    assert course(made, memory(made)[0]) == ()
