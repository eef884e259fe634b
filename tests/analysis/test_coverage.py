"""What share of any column is covered, against counting nanosecond by nanosecond."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.analysis import coverage as module
from meshscope.analysis import stack as stack_module
from meshscope.analysis.coverage import Coverage, columns, coverage
from meshscope.analysis.stack import stack, stacked_columns
from meshscope.intervals import Intervals, union

lengths = st.lists(st.integers(1, 40), min_size=0, max_size=40)


def intervals(steps: list[int]) -> Intervals:
    """Gaps and intervals in turn, of the lengths given."""
    edges = np.cumsum(np.array(steps[: len(steps) // 2 * 2], dtype=np.int64))
    return union(edges[0::2], edges[1::2])


def shares_of(found: Coverage, edges: Any) -> tuple[Any, Any]:
    """Of one coverage, as shares of each column; what it has of it in ns is shared out by no float."""
    busy_ns = columns([found], edges)
    return busy_ns[0] / np.diff(edges), busy_ns[0] > 0


def counted(busy: Intervals, edges: Any) -> tuple[list[float], list[bool]]:
    """By looking at every nanosecond."""
    covered = {time for s, e in zip(busy.start_ns.tolist(), busy.end_ns.tolist(), strict=True) for time in range(s, e)}
    columns = [range(a, b) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
    shares = [sum(time in covered for time in column) / len(column) for column in columns]
    return shares, [share > 0 for share in shares]


@given(lengths, st.integers(-50, 900), st.integers(1, 30), st.integers(1, 40))
def test_every_column_as_by_counting(steps: list[int], start: int, columns: int, width: int) -> None:
    busy = intervals(steps)
    edges = start + np.arange(columns + 1, dtype=np.int64) * width
    shares, there = shares_of(coverage(busy), edges)
    wanted, is_there = counted(busy, edges)
    assert shares.tolist() == pytest.approx(wanted)
    assert there.tolist() == is_there
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        assert coverage(busy).within(begin, end) == pytest.approx(wanted[(begin - start) // width] * width)


@given(st.lists(st.integers(1, 40), min_size=20, max_size=300), st.integers(0, 2**32))
def test_a_table_of_totals_is_exact_where_an_edge_is_a_bin_and_within_a_bin_elsewhere(
    steps: list[int], seed: int
) -> None:
    busy = intervals(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST_BINS", 8)
        found = coverage(busy)
    exact = coverage(busy)
    if not len(found.bins_ns):
        assert len(busy) <= 8
        return
    bins = found.first_ns + np.arange(0, 9, 4, dtype=np.int64) * found.bin_ns
    assert shares_of(found, bins)[0].tolist() == pytest.approx(shares_of(exact, bins)[0].tolist())
    first = int(np.random.default_rng(seed).integers(0, found.bin_ns)) + found.first_ns
    edges = first + np.arange(2, dtype=np.int64) * 4 * found.bin_ns
    width = 4 * found.bin_ns
    assert shares_of(found, edges)[0] * width == pytest.approx(shares_of(exact, edges)[0] * width, abs=2 * found.bin_ns)


def test_many_intervals_get_a_table_and_nothing_covers_nothing() -> None:
    start_ns = np.arange(200_000, dtype=np.int64) * 10
    many = coverage(union(start_ns, start_ns + 3))
    assert len(many.bins_ns) > 100_000
    whole = np.array([0, 1_000_000, 2_000_000], dtype=np.int64)
    assert shares_of(many, whole)[0].tolist() == pytest.approx([0.3, 0.3])
    near = np.array([0, 5, 10, 13], dtype=np.int64)
    assert shares_of(many, near)[0].tolist() == pytest.approx([0.6, 0.0, 1.0])
    nothing = coverage(union(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)))
    assert shares_of(nothing, near)[0].tolist() == [0, 0, 0]
    assert nothing.upto(near).tolist() == [0, 0, 0, 0]


def test_the_least_of_many_intervals_shows_in_the_longest_column() -> None:
    """200 000 of a nanosecond, and one more alone after as long a gap again, whose column rounds to nothing."""
    start_ns = np.append(np.arange(200_000, dtype=np.int64) * 1000, 400_000_000)
    found = coverage(union(start_ns, start_ns + 1))
    assert len(found.bins_ns)
    edges = np.arange(0, 401_000_001, 1_000_000, dtype=np.int64)
    busy_ns = columns([found], edges)[0]
    assert busy_ns[:200].min() > 0
    assert busy_ns[201:399].tolist() == [0] * 198  # bins reach over the edges beside
    assert busy_ns[400] > 0


@given(
    st.lists(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 2)), max_size=30), min_size=1, max_size=3),
    st.integers(-50, 400), st.integers(1, 30), st.integers(1, 40),
)  # fmt: skip
def test_layers_laid_into_one_another_have_of_each_column_what_each_has_alone(
    lanes: list[list[tuple[int, int]]], start: int, columns_: int, width: int
) -> None:
    edges = start + np.arange(columns_ + 1, dtype=np.int64) * width
    layers = [layered(lane) for lane in lanes]
    stacks = [stack(some) for some in layers]
    wanted = columns([one for some in layers for one in some], edges)
    assert stacked_columns([one for one in stacks if one is not None], edges).tolist() == wanted.tolist()
    assert None not in stacks


def layered(lane: list[tuple[int, int]]) -> list[Coverage]:
    """Intervals one directly behind the other, each of one of three layers."""
    ends = np.cumsum([length for length, _ in lane], dtype=np.int64)
    starts = ends - [length for length, _ in lane]
    of = np.array([layer for _, layer in lane], dtype=np.int64)
    return [coverage(union(starts[of == layer], ends[of == layer])) for layer in range(3)]


def test_layers_that_are_at_once_or_too_many_to_lay_out_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (coverage(union(np.array([start]), np.array([start + 10]))) for start in (0, 5))
    assert stack([one, other]) is None
    assert stack([]) is None
    assert stack([one]) is not None
    monkeypatch.setattr(stack_module, "_FEW", 0)
    assert stack([one]) is None
