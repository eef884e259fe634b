"""Rank by rank: what the panel of waiting draws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from meeting import MS, met, run_of, window

from meshscope.analysis.rank_waits import RankWaits, bands, binned, named_late, per_cell, rank_waits, worst_first
from meshscope.recording.entries import Ended
from meshscope.run import Run

STEPS = 8


def cases(late_ms: list[list[int]], **about: Any) -> Run:
    """Two collectives of 10 ms in each step of 200 ms; ranks (rows) are so much late to the first, by step."""
    arrival = np.tile(np.arange(2 * STEPS) * 100 * MS, (len(late_ms), 1))
    arrival[:, ::2] += np.array(late_ms) * MS
    windows = [
        replace(one, start_ns=0, end_ns=STEPS * 200 * MS)
        for one in met(arrival, 10 * MS, steps=np.repeat(range(STEPS), 2).tolist(), host="one")
    ]
    known: dict[str, Any] = {"strategy": "ddp", "device_kind": "gpu", "ranks": len(late_ms)}
    return run_of(windows, **(known | about))


ONE_LATE = [[0] * STEPS, [20, 40] * 4, [0] * STEPS]


def test_a_row_has_what_a_step_takes_in_the_mean_and_how_often_the_rank_came_last() -> None:
    found = rank_waits(cases(ONE_LATE))
    first, late, _ = found.rows
    # Two transfers of 10 ms a step; 30 ms waited in the mean step.
    assert (first.transfer_ns, first.wait_ns, first.held_ns) == (20 * MS, 30 * MS, 0)
    assert (late.transfer_ns, late.wait_ns, late.held_ns) == (20 * MS, 0, 30 * MS)
    assert (late.last, late.calls, first.calls) == (8, 16, 16)
    assert found.residual_ns == 0


def test_lateness_is_a_share_of_the_step_it_lies_in() -> None:
    found = rank_waits(cases(ONE_LATE))
    lengths = np.full(STEPS, 110)  # from the first arrival to the end of the second collective
    assert found.rows[1].late_frac == pytest.approx(np.array([20, 40] * 4) / lengths)
    assert found.step_ns == 110 * MS
    assert not found.rows[0].late_frac.any()


def test_the_sentence_names_a_straggler_or_says_that_there_is_none() -> None:
    bad = rank_waits(cases(ONE_LATE))
    assert bad.is_bad
    assert bad.words.startswith(
        "rank 1 came last to 8 of 16 collectives; 15.0 % of the time traced another rank waits for it without computing"
    )
    even = rank_waits(cases([[0] * STEPS] * 3))
    assert not even.is_bad
    assert even.words == "no rank is late by 2 % of a step or more in any of 8 steps"


def test_on_shared_cores_lateness_by_turns_is_said_to_be_chance_and_a_cheap_one_to_be_cheap() -> None:
    shared = {"device_kind": "cpu", "cores": 2}
    turns = rank_waits(cases([[30, 0, 40, 0] * 2, [0, 50, 0, 20] * 2], **shared))
    assert "some rank is late by 2 % of a step or more in 8 of 8 steps, which may be chance" in turns.words
    cheap = rank_waits(cases([[0] * STEPS, [6] * STEPS], **shared))
    assert cheap.words == "rank 1 is late by 2 % of a step or more, but no straggler: under 5 % is lost to it"


def test_two_late_steps_are_said_to_make_no_pattern() -> None:
    training = cases([[0] * STEPS, [30, 30] + [0] * 6])
    found = rank_waits(training)
    some = "some rank is late by 2 % of a step or more in 2 of 8 steps"
    assert found.words == f"no straggler so far: {some}; 3 such steps make a pattern"
    over = replace(training, ended=Ended(t_ns=2 * 10**9, outcome="done"))
    assert rank_waits(over).words == f"no straggler: {some}; 3 such steps make a pattern"


def test_one_rank_of_two_and_a_trace_without_collectives_say_why_nothing_is_known() -> None:
    whole = cases(ONE_LATE)
    alone = rank_waits(replace(whole, windows=whole.windows[:1]))
    assert not alone.rows
    assert alone.why.startswith("16 of 16 collective spans: only rank 0 alone of the 3 ranks of the run can be seen")
    assert "the traces hold no collective" in rank_waits(replace(whole, windows=())).why


def test_the_latest_come_first() -> None:
    found = rank_waits(cases([[0] * STEPS, [20, 40] * 4, [5] * STEPS, [0] * STEPS, [0] * STEPS]))
    assert [row.rank for row in worst_first(found)][:2] == [1, 2]


def test_a_call_outside_every_step_is_no_part_of_the_mean_step() -> None:
    """Rank 1 is 40 ms late to the second of two calls, which lies in no step; to the first, in step 3, it is by 10."""
    arrival = np.array([[0, 100], [10, 140], [0, 100]]) * MS
    run = run_of(met(arrival, 10 * MS, steps=[3, -1], host="one"), strategy="ddp", device_kind="gpu", ranks=3)
    first, late, _ = rank_waits(run).rows
    assert (first.wait_ns, first.transfer_ns, late.held_ns) == (10 * MS, 10 * MS, 10 * MS)
    assert (late.last, late.calls) == (2, 2)


def test_neighbours_are_folded_to_the_latest_of_them() -> None:
    found = rank_waits(cases([[0] * STEPS, [20, 40] * 4, [5] * STEPS, [0] * STEPS, [0] * STEPS]))
    first, second, third = bands(found.rows, 3)
    assert [band.ranks for band in (first, second, third)] == [(0, 1), (2, 3), (4,)]
    assert first.late_frac.tolist() == found.rows[1].late_frac.tolist()
    assert second.late_frac.tolist() == found.rows[2].late_frac.tolist()
    assert not third.late_frac.any()
    assert first.rows == found.rows[:2]
    assert [band.ranks for band in bands(found.rows, 1)] == [(0, 1, 2, 3, 4)]
    assert bands((), 3) == ()


def test_those_that_are_late_in_the_mean_are_counted() -> None:
    # 2 % of a step is about 2 ms here: two ranks are late by more in the mean, one only now and then.
    late = cases([[0] * STEPS, [20, 40] * 4, [5] * STEPS, [0, 0, 0, 0, 0, 0, 0, 8], [0] * STEPS])
    assert named_late(rank_waits(late)) == 2
    assert named_late(RankWaits()) == 0


def test_as_many_steps_share_a_cell_as_a_power_of_two() -> None:
    assert [per_cell(12, cells) for cells in (12, 11, 6, 5, 1, 0)] == [1, 2, 2, 4, 16, 1]


def test_cells_keep_the_worst_of_the_steps_that_share_them() -> None:
    steps = np.array([0.0, 0.3, 0.1, math.nan, math.nan, math.nan, 0.0])
    assert binned(steps, 7).tolist() == pytest.approx(steps.tolist(), nan_ok=True)
    assert binned(steps, 4).tolist() == pytest.approx([0.3, 0.1, math.nan, 0.0], nan_ok=True)
    assert binned(steps, 2).tolist() == pytest.approx([0.3, 0.0], nan_ok=True)
    assert not len(binned(steps, 0))


def test_nothing_is_stepped_before_anything_is_known() -> None:
    assert not RankWaits().is_stepped
    assert not RankWaits(steps=(-1,)).is_stepped


def test_what_two_calls_at_once_wait_for_one_rank_is_held_up_once() -> None:
    """Rank 0 asks for both calls at 0 and waits for rank 1 until 50 and 60 ms; one transfers from 50 to 60 ms."""
    windows = [
        window(0, [0, 0], [60 * MS, 70 * MS], steps=[0, 0], world=2),
        window(1, [50 * MS, 60 * MS], [60 * MS, 70 * MS], steps=[0, 0], world=2),
    ]
    late = rank_waits(run_of(windows)).rows[1]
    assert late.held_ns == 50 * MS
