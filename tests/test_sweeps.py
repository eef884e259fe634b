"""Compiled sweeps over intervals give what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope import fast
from meshscope.intervals import Intervals, intersection, union

pytest.importorskip("numba", reason="the fast extra is not installed")

Pairs = list[tuple[int, int]]

near = st.tuples(st.integers(-20, 60), st.integers(-20, 60))
far = st.tuples(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62))
pairs = st.lists(near, max_size=14) | st.lists(far, max_size=14)


def columns(drawn: Pairs) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    ends = np.array(drawn, dtype=np.int64).reshape(-1, 2)
    return ends[:, 0].copy(), ends[:, 1].copy()


def same(one: Intervals, other: Intervals) -> bool:
    return bool(np.array_equal(one.start_ns, other.start_ns) and np.array_equal(one.end_ns, other.end_ns))


@given(pairs, st.booleans())
def test_a_swept_union_is_the_union(drawn: Pairs, is_sorted: bool) -> None:
    start_ns, end_ns = columns(sorted(drawn) if is_sorted else drawn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(fast.SWITCH, "0")
        expected = union(start_ns, end_ns)
        patch.setenv(fast.SWITCH, "1")
        assert same(union(start_ns, end_ns), expected)


@given(pairs, pairs)
def test_a_swept_intersection_is_the_intersection(a: Pairs, b: Pairs) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(fast.SWITCH, "0")
        first, second = union(*columns(a)), union(*columns(b))
        expected = intersection(first, second)
        patch.setenv(fast.SWITCH, "1")
        assert same(intersection(first, second), expected)


def test_a_sweep_takes_columns_that_may_not_be_written_to() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(fast.SWITCH, "1")
        start_ns, end_ns = columns([(0, 5), (3, 9)])
        start_ns.flags.writeable = end_ns.flags.writeable = False
        assert same(union(start_ns, end_ns), Intervals(np.array([0]), np.array([9])))
        repeated = np.broadcast_to(np.int64(4), 3)
        assert same(union(repeated, repeated + 2), Intervals(np.array([4]), np.array([6])))
