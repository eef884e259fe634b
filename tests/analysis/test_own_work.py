"""What ranks do themselves in all steps, and when a mean is beyond chance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawn import run

from meshscope.analysis.noise import least_mean
from meshscope.analysis.own_work import excesses
from meshscope.recording.entries import StepDone
from meshscope.run import Run

MS = 1_000_000


def trained(cpu_ms: Callable[[int, int], float], *, ranks: int = 2, steps: int = 22, **about: Any) -> Run:
    done = [
        StepDone(
            t_ns=1, rank=rank, step=step, start_ns=step * 100 * MS, end_ns=(step + 1) * 100 * MS,
            cpu_ns=round(cpu_ms(rank, step) * MS), is_profiled=step == 5,
        )
        for rank in range(ranks)
        for step in range(steps)
    ]  # fmt: skip
    return run(done, ranks=ranks, **({"device_kind": "cpu"} | about))


def test_the_excess_is_over_the_mean_of_the_others_and_leaves_out_warm_up_and_profiled_steps() -> None:
    def cpu_ms(rank: int, step: int) -> float:
        return 500 if step < 2 or step == 5 else (20, 50, 30)[rank]

    first, second, third = excesses(trained(cpu_ms, ranks=3))
    assert [one.rank for one in (first, second, third)] == [0, 1, 2]
    assert (second.steps, second.mean_ns, second.phase) == (19, 25 * MS, "compute")
    assert (first.others_ns, second.others_ns) == (40 * MS, 25 * MS)
    assert (first.mean_ns, third.mean_ns) == (-20 * MS, -5 * MS)
    assert second.least_ns == pytest.approx(25 * MS)


def test_time_on_cores_says_nothing_of_a_gpu_few_steps_nothing_of_a_run_and_one_process_nothing_of_devices() -> None:
    assert excesses(trained(lambda rank, _: 20 + rank, device_kind="gpu")) == ()
    assert excesses(trained(lambda rank, _: 20 + rank, steps=9)) == ()
    assert excesses(trained(lambda rank, _: 20 + rank, ranks=1)) == ()
    assert excesses(trained(lambda rank, _: -1e-6)) == ()
    assert len(excesses(trained(lambda rank, _: 20 + rank, steps=11))) == 2


def test_a_mean_is_at_least_what_students_interval_leaves_of_it() -> None:
    # Mean 100, deviation 8.165, of 4: 100 - 5.841 * 8.165 / 2 for one of two series (99 % two-sided).
    values = np.array([100.0, 110.0, 90.0, 100.0])
    assert least_mean(values, parts=4, tries=2) == pytest.approx(100 - 5.841 * 8.165 / 2, rel=0.01)
    assert least_mean(values, parts=4, tries=8) < least_mean(values, parts=4, tries=2)
    assert least_mean(values[:2], parts=4, tries=2) == -math.inf


def test_what_slows_several_steps_in_a_row_counts_once() -> None:
    rng = np.random.default_rng(3)
    level = np.repeat(rng.normal(0, 10, 10), 8)
    assert least_mean(level, parts=10, tries=2) < least_mean(level, parts=80, tries=2)


def test_of_series_without_a_difference_one_in_a_hundred_is_called_beyond_chance_at_most() -> None:
    rng = np.random.default_rng(4)
    called = sum(
        any(least_mean(sign * series, parts=4, tries=2) > 0 for sign in (1, -1))
        for series in rng.normal(0, 1, (4000, 4))
    )
    assert called / 4000 == pytest.approx(0.01, abs=0.006)
