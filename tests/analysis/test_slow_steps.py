"""Slow steps, waiting for input, and memory that differs between ranks."""

from __future__ import annotations

import math

import pytest
from drawn import run, steps

from meshscope.analysis.imbalance import memory_imbalance
from meshscope.analysis.slow_steps import SlowStep, input_waits, slow_steps
from meshscope.recording.entries import Compiled, MemoryMeasured, StepDone

MS = 1_000_000


def series(slow: dict[int, float], waits: dict[tuple[int, int], int] | None = None) -> list[StepDone]:
    """Twenty steps of 100 ms on two ranks, some slower."""
    found, at = [], 0
    for step in range(20):
        length = round(slow.get(step, 100 + step % 3) * MS)
        for rank in range(2):
            waited = (waits or {}).get((rank, step), MS)
            found.append(
                StepDone(t_ns=at + length, rank=rank, step=step, start_ns=at, end_ns=at + length, data_wait_ns=waited)
            )
        at += length
    return found


def test_a_step_far_beyond_the_others_is_told() -> None:
    (found,) = slow_steps(run(series({11: 300})))
    assert found == SlowStep(step=11, duration_ns=300 * MS, excess_ns=199 * MS, data_rank=0, data_ns=MS, phase="")


def test_a_slow_step_that_waited_for_its_batch_says_on_which_rank() -> None:
    (found,) = slow_steps(run(series({11: 300}, {(1, 11): 180 * MS})))
    assert (found.phase, found.data_rank, found.data_ns) == ("data", 1, 180 * MS)


@pytest.mark.parametrize("slow", [{}, {11: 118}, {0: 900, 1: 900}], ids=["even", "within a fifth", "warm-up"])
def test_usual_steps_are_not_told(slow: dict[int, float]) -> None:
    assert slow_steps(run(series(slow))) == ()


def test_a_step_that_compiled_and_one_that_was_profiled_are_not_slow() -> None:
    again = Compiled(t_ns=1, rank=0, name="f", stage="compile", duration_ns=5, step=11)
    assert slow_steps(run([*series({11: 300}), again])) == ()
    assert slow_steps(run(steps([9, 9, *[10.0] * 8, 30], profiled=[10]))) == ()
    assert [found.step for found in slow_steps(run(steps([9, 9, *[10.0] * 8, 30])))] == [10]


def test_a_few_steps_say_nothing_about_what_is_usual() -> None:
    assert slow_steps(run(steps([9, 9, 9, 9, 9, 90]))) == ()


def test_waiting_for_input_is_a_share_of_the_measured_steps() -> None:
    quiet, stalled = input_waits(run(series({}, {(1, step): 30 * MS for step in (5, 6, 12)})))
    assert (quiet.rank, quiet.steps, quiet.wait_ns, quiet.stalls) == (0, 18, 18 * MS, ())
    assert (stalled.rank, stalled.wait_ns, stalled.stalls) == (1, 105 * MS, (5, 6, 12))
    assert stalled.frac == pytest.approx(105 / sum(100 + step % 3 for step in range(2, 20)))


def test_steps_that_wait_for_nothing_have_no_stall() -> None:
    assert all(found.stalls == () for found in input_waits(run(steps([9.0] * 9))))
    assert input_waits(run(steps([9.0] * 9, data_wait_ns=-1))) == ()


def measured(rank: int, peak_bytes: int) -> MemoryMeasured:
    return MemoryMeasured(t_ns=1, rank=rank, device=rank, step=1, source="x", categories={}, how={},
                          peak_bytes=peak_bytes, peak_how="measured")  # fmt: skip


def test_memory_is_uneven_where_a_rank_needs_a_tenth_more_than_the_median() -> None:
    found = memory_imbalance(run([measured(0, 100), measured(1, 130), measured(2, 90)]))
    assert found is not None
    assert (found.fullest, found.peak_bytes, found.emptiest, found.least_bytes) == (1, 130, 2, 90)
    assert found.median_bytes == 100
    assert (found.frac, found.is_material) == (pytest.approx(0.3), True)


def test_memory_of_one_rank_or_of_none_is_not_compared() -> None:
    assert memory_imbalance(run([measured(0, 100)])) is None
    assert memory_imbalance(run()) is None


def test_peaks_of_the_steps_are_compared_where_nothing_else_was_measured() -> None:
    first = steps([9.0] * 3, ranks=1, peak_bytes=100)
    second = [StepDone(t_ns=1, rank=1, step=0, start_ns=0, end_ns=9, peak_bytes=104)]
    found = memory_imbalance(run([*first, *second]))
    assert found is not None
    assert (found.fullest, found.is_material) == (1, False)
    assert not math.isnan(found.frac)
