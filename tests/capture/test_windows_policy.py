"""When ranks are asked to profile."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.capture import windows
from meshscope.capture.request import Windows
from meshscope.capture.windows import Training
from meshscope.recording.control import Ask

MS = 1_000_000
POLICY = Windows(active=2)
FIRST = Ask(what="window", first_step=5, end_step=6)
PAST = Ask(what="window", first_step=5, end_step=7)
STEADY = Training(planned=0, step=100, durations_ns=(100 * MS,) * 40, training_ns=10_000 * MS, windows=(PAST,))


def _spans(asks: tuple[Ask, ...]) -> list[tuple[int, int]]:
    return [(ask.first_step, ask.end_step) for ask in asks]


@pytest.mark.parametrize(
    ("planned", "expected"),
    [(0, [(5, 7)]), (60, [(5, 7)]), (20, [(5, 7)]), (10, [(5, 7)]), (4, [(2, 4)]), (2, [])],
)
def test_only_the_first_window_is_sure_and_it_is_early(planned: int, expected: list) -> None:
    assert _spans(windows.opening(POLICY, planned)) == expected


def test_a_fixed_cycle_has_its_second_window_from_the_start() -> None:
    assert _spans(windows.opening(Windows(active=2, wait=20), 60)) == [(5, 7), (28, 30)]
    assert _spans(windows.opening(Windows(active=2, wait=20), 30)) == [(5, 7)]


def test_by_default_a_window_is_one_step() -> None:
    assert _spans(windows.opening(Windows(), 60)) == [(5, 6)]


def test_only_the_first_window_records_memory() -> None:
    assert [ask.has_memory for ask in windows.opening(Windows(wait=20), 60)] == [True, False]


@pytest.mark.parametrize(("cost_ms", "expected"), [(89, (38, 39)), (91, None)])
def test_a_run_of_known_length_has_a_second_window_where_both_together_stay_within_the_budget(
    cost_ms: int, expected: tuple[int, int] | None
) -> None:
    # 3 % of 60 steps of 100 ms are 180 ms, for two windows.
    young = Training(planned=60, step=20, durations_ns=(100 * MS,) * 15, costs_ns=(cost_ms * MS,), windows=(FIRST,))
    assert windows.due(Windows(), dataclasses.replace(young, training_ns=2100 * MS)) is None, "it is early"
    later = dataclasses.replace(young, step=31, training_ns=3200 * MS)
    ask = windows.due(Windows(), later)
    assert (ask and (ask.first_step, ask.end_step)) == (expected)


@given(
    planned=st.integers(0, 400),
    active=st.integers(0, 6),
    first=st.integers(0, 9),
    warmup=st.integers(0, 3),
    wait=st.none() | st.integers(1, 50),
)
def test_opening_windows_lie_within_the_run_and_apart(
    planned: int, active: int, first: int, warmup: int, wait: int | None
) -> None:
    opened = windows.opening(Windows(first=first, active=active, warmup=warmup, wait=wait), planned)
    for ask in opened:
        assert ask.first_step - ask.warmup >= 0
        assert not planned or ask.end_step <= planned
        assert ask.end_step - ask.first_step == active > 0
    for before, after in itertools.pairwise(opened):
        assert after.first_step - after.warmup > before.end_step


def test_a_window_comes_as_soon_as_the_budget_has_room_for_one_more() -> None:
    # A quarter of the 4 % is kept for slow steps: 3 % of 10 s are 300 ms.
    spent = dataclasses.replace(STEADY, costs_ns=(140 * MS,))
    assert windows.due(POLICY, spent) is not None
    assert windows.due(POLICY, dataclasses.replace(STEADY, costs_ns=(160 * MS,))) is None
    assert (
        windows.due(Windows(active=2, budget_frac=0.05), dataclasses.replace(STEADY, costs_ns=(160 * MS,))) is not None
    )


def test_windows_on_their_way_count_as_spent() -> None:
    room_for_two = dataclasses.replace(STEADY, costs_ns=(140 * MS,))
    assert windows.due(POLICY, room_for_two) is not None
    coming = (PAST, Ask(what="window", first_step=400, end_step=402))
    assert windows.due(POLICY, dataclasses.replace(room_for_two, windows=coming)) is None


@pytest.mark.parametrize("first", [90, 96, 110, 118])
def test_the_cycle_leaves_steps_to_measure_around_every_window(first: int) -> None:
    other = Ask(what="window", first_step=first, end_step=first + 2)
    near = dataclasses.replace(STEADY, costs_ns=(10 * MS,), windows=(PAST, other))
    ask = windows.due(POLICY, near)
    assert ask is None or ask.first_step - ask.warmup > other.end_step + 12 or ask.end_step + 12 < other.first_step
    assert (ask is None) == (first > 91)


def test_no_window_comes_by_itself_while_the_cost_of_one_is_unknown() -> None:
    assert windows.due(POLICY, STEADY) is None


def test_a_window_begins_late_enough_for_every_rank_to_read_of_it() -> None:
    slow = windows.by_key(POLICY, STEADY)
    assert slow is not None
    assert slow.first_step - slow.warmup >= 101 + 5, "half a second of 100 ms steps"
    fast = windows.by_key(POLICY, dataclasses.replace(STEADY, durations_ns=(5 * MS,) * 40))
    assert fast is not None
    assert fast.first_step - fast.warmup >= 101 + 100


def test_a_fixed_cycle_waits_as_many_steps_as_it_was_told() -> None:
    policy = Windows(wait=20, warmup=2, active=3)
    before = Ask(what="window", first_step=97, end_step=100, warmup=2)
    ask = windows.due(policy, dataclasses.replace(STEADY, step=105, windows=(before,)))
    assert ask is not None
    assert (ask.first_step, ask.end_step) == (122, 125)
    assert windows.due(policy, dataclasses.replace(STEADY, step=98, windows=(before,))) is None


def test_windows_never_touch() -> None:
    coming = Ask(what="window", first_step=110, end_step=112)
    assert windows.by_key(POLICY, dataclasses.replace(STEADY, windows=(coming,))) is None


def test_no_window_reaches_past_the_end() -> None:
    assert windows.by_key(POLICY, dataclasses.replace(STEADY, planned=106)) is None


def test_a_step_beyond_three_sigma_asks_for_a_window_and_then_rests() -> None:
    uneven = dataclasses.replace(STEADY, durations_ns=(90 * MS, 110 * MS) * 20, costs_ns=(160 * MS,))
    assert windows.by_slow_step(POLICY, uneven, 125 * MS) is None
    ask = windows.by_slow_step(POLICY, uneven, 135 * MS)
    assert ask is not None
    assert ask.reason == "slow step"
    resting = dataclasses.replace(uneven, slow_asked_ns=uneven.training_ns - 1000 * MS)
    assert windows.by_slow_step(POLICY, resting, 135 * MS) is None
    dear = dataclasses.replace(uneven, costs_ns=(210 * MS,))
    assert windows.by_slow_step(POLICY, dear, 135 * MS) is None, "the budget holds for these too"


def test_too_few_steps_say_nothing_about_sigma() -> None:
    young = dataclasses.replace(STEADY, durations_ns=(100 * MS,) * 5, costs_ns=(MS,))
    assert windows.by_slow_step(POLICY, young, 900 * MS) is None


def test_profiling_can_be_switched_off_and_a_key_still_brings_a_window() -> None:
    off = Windows(active=0)
    assert windows.opening(off, 60) == ()
    assert windows.due(off, dataclasses.replace(STEADY, costs_ns=(0,))) is None
    assert windows.by_slow_step(off, dataclasses.replace(STEADY, costs_ns=(MS,)), 900 * MS) is None
    assert windows.by_key(off, STEADY) is not None
