"""What calls side by side take of the time on the wall, worked by hand and against counted ticks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meeting import met

from meshscope.analysis.wall_time import moved, parts
from meshscope.intervals import EMPTY, Intervals, union
from meshscope.spans import Kind


def ns(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_one_after_the_other_each_takes_its_own_time() -> None:
    assert parts(ns(0, 10, 30), ns(10, 30, 31), EMPTY).tolist() == [10, 20, 1]


def test_side_by_side_they_share_each_moment() -> None:
    # 0–10 alone, 10–20 by two, 20–30 by three, 30–50 alone.
    assert parts(ns(0, 10, 20), ns(30, 30, 50), EMPTY).tolist() == pytest.approx(
        [10 + 5 + 10 / 3, 5 + 10 / 3, 10 / 3 + 20]
    )


def test_what_lies_in_the_rest_is_nobody_s() -> None:
    assert parts(ns(0, 0), ns(20, 10), Intervals(ns(5, 18), ns(12, 40))).tolist() == [2.5 + 6, 2.5]


def test_calls_that_take_no_time_have_no_part() -> None:
    assert parts(ns(5), ns(5), EMPTY).tolist() == [0]
    assert parts(ns(), ns(), EMPTY).tolist() == []


BOUNDS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=8)


@given(BOUNDS, BOUNDS)
def test_parts_are_those_of_counted_ticks(calls: list[tuple[int, int]], rest: list[tuple[int, int]]) -> None:
    start, end = ns(*(at for at, _ in calls)), ns(*(at + length for at, length in calls))
    out = {tick for at, length in rest for tick in range(at, at + length)}
    without = union(ns(*(at for at, _ in rest)), ns(*(at + length for at, length in rest)))
    running = [sum(at <= tick < at + length for at, length in calls) for tick in range(50)]
    by_hand = [sum(1 / running[tick] for tick in range(at, at + length) if tick not in out) for at, length in calls]
    assert parts(start, end, without).tolist() == pytest.approx(by_hand)


def test_the_transfer_begins_when_the_last_rank_has_come() -> None:
    from meeting import run_of

    from meshscope.analysis.waiting import waiting

    windows = met([[0, 100], [30, 100]], [10, 20])
    waits = waiting(run_of(windows)).windows
    found = moved(windows[0], np.flatnonzero(windows[0].spans.kind == Kind.COLLECTIVE), waits[windows[0]])
    assert found.wall_ns.tolist() == [10, 20]
    assert found.exposed_ns.tolist() == [10, 20]
    unmatched = moved(windows[0], ns(0, 1), None)
    assert len(unmatched.row) == 0
