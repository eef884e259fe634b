"""Intervals against sets of ticks: every operation is the set operation on the points it covers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meshscope.intervals import (
    Intervals,
    common_ns,
    complement,
    covered_ns,
    difference,
    intersection,
    together,
    union,
    window,
)

Pairs = list[tuple[int, int]]

pairs = st.lists(st.tuples(st.integers(-20, 60), st.integers(-20, 60)), max_size=12)


def intervals(drawn: Pairs) -> Intervals:
    ends = np.array(drawn, dtype=np.int64).reshape(-1, 2)
    return union(ends[:, 0], ends[:, 1])


def ticks(found: Intervals) -> set[int]:
    return {tick for start, end in zip(found.start_ns, found.end_ns, strict=True) for tick in range(start, end)}


def drawn_ticks(drawn: Pairs) -> set[int]:
    return {tick for start, end in drawn for tick in range(start, end)}


def is_canonical(found: Intervals) -> bool:
    """Sorted, disjoint, non-touching, non-empty."""
    return bool((found.end_ns > found.start_ns).all() and (found.start_ns[1:] > found.end_ns[:-1]).all())


@given(pairs)
def test_a_union_covers_what_any_interval_covers(drawn: Pairs) -> None:
    assert ticks(intervals(drawn)) == drawn_ticks(drawn)
    assert is_canonical(intervals(drawn))


@given(pairs)
def test_the_total_counts_every_tick_once(drawn: Pairs) -> None:
    assert intervals(drawn).total_ns == len(drawn_ticks(drawn))


@given(pairs, pairs)
def test_an_intersection_covers_what_both_cover(a: Pairs, b: Pairs) -> None:
    found = intersection(intervals(a), intervals(b))
    assert ticks(found) == drawn_ticks(a) & drawn_ticks(b)
    assert bool((found.end_ns > found.start_ns).all())


@given(pairs, pairs)
def test_a_difference_covers_what_only_the_first_covers(a: Pairs, b: Pairs) -> None:
    assert ticks(difference(intervals(a), intervals(b))) == drawn_ticks(a) - drawn_ticks(b)


@given(pairs, pairs)
def test_operators_are_the_set_operations(a: Pairs, b: Pairs) -> None:
    first, second = intervals(a), intervals(b)
    assert ticks(first | second) == drawn_ticks(a) | drawn_ticks(b)
    assert ticks(first & second) == drawn_ticks(a) & drawn_ticks(b)
    assert ticks(first - second) == drawn_ticks(a) - drawn_ticks(b)


@given(pairs, st.integers(-20, 60), st.integers(-20, 60))
def test_a_complement_covers_the_rest_of_its_bounds(drawn: Pairs, start: int, end: int) -> None:
    assert ticks(complement(intervals(drawn), start, end)) == set(range(start, end)) - drawn_ticks(drawn)


@given(pairs, st.integers(-20, 60), st.integers(-20, 60))
def test_a_window_keeps_what_lies_inside(drawn: Pairs, start: int, end: int) -> None:
    assert ticks(window(intervals(drawn), start, end)) == set(range(start, end)) & drawn_ticks(drawn)


def test_intervals_that_touch_become_one() -> None:
    assert intervals([(0, 5), (5, 9)]).start_ns.tolist() == [0]


@given(pairs, pairs)
def test_how_much_is_covered_counts_the_ticks_in_each_stretch(drawn: Pairs, stretches: Pairs) -> None:
    bounds = np.array([(min(ends), max(ends)) for ends in stretches], dtype=np.int64).reshape(-1, 2)
    counted = covered_ns(intervals(drawn), bounds[:, 0], bounds[:, 1])
    assert counted.tolist() == [len(drawn_ticks(drawn) & set(range(start, end))) for start, end in bounds.tolist()]


@given(st.lists(st.tuples(pairs, pairs), max_size=5))
def test_what_pairs_have_in_common_is_added_up_in_one_go(drawn: list[tuple[Pairs, Pairs]]) -> None:
    ones, others = ([intervals(pair[which]) for pair in drawn] for which in (0, 1))
    each = (intersection(one, other).total_ns for one, other in zip(ones, others, strict=True))
    assert common_ns(ones, others) == sum(each)


@given(st.lists(pairs, max_size=5))
def test_several_together_are_all_of_their_points(drawn: list[Pairs]) -> None:
    found = together([intervals(one) for one in drawn])
    assert is_canonical(found)
    assert ticks(found) == set().union(*map(drawn_ticks, drawn))
