"""Spans in spans, against a search through all of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meshscope.analysis.nesting import nest


@st.composite
def nested(draw: st.DrawFn, low: int = 0, high: int = 60, depth: int = 0) -> list[tuple[int, int]]:
    """Spans of one thread: each beside or within the others."""
    found, at = [], low
    while at < high and draw(st.booleans()):
        start = draw(st.integers(at, high - 1))
        end = draw(st.integers(start, high))
        found.append((start, end))
        if depth < 4 and end - start > 1:
            found += draw(nested(start, end, depth + 1))
        at = end + draw(st.integers(0, 3))
    return found


def by_search(spans: list[tuple[int, int]], time: int, *, shortest: bool) -> tuple[int, int] | None:
    around = [(end - start, start, end) for start, end in spans if start <= time < end]
    if not around:
        return None
    return (min(around) if shortest else max(around))[1:]


@given(nested(), st.integers(0, 60), st.randoms())
def test_the_spans_around_a_moment_are_those_that_a_search_finds(spans: list[tuple[int, int]], time: int, rng) -> None:  # type: ignore[no-untyped-def]
    rng.shuffle(spans)
    start = np.array([s for s, _ in spans], dtype=np.int64)
    end = np.array([e for _, e in spans], dtype=np.int64)
    found = nest(np.zeros(len(spans), dtype=np.int32), start, end)
    lane, at = np.zeros(1, dtype=np.int64), np.array([time], dtype=np.int64)
    for answer, shortest in ((found.innermost(lane, at), True), (found.outermost(lane, at), False)):
        expected = by_search(spans, time, shortest=shortest)
        assert (None if answer[0] < 0 else spans[answer[0]]) == expected


@given(nested())
def test_own_times_add_up_to_what_the_outermost_cover(spans: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in spans], dtype=np.int64)
    end = np.array([e for _, e in spans], dtype=np.int64)
    covered = {tick for s, e in spans for tick in range(s, e)}
    assert nest(np.zeros(len(spans), dtype=np.int32), start, end).own_ns().sum() == len(covered)


def test_lanes_are_apart() -> None:
    found = nest(np.array([0, 1]), np.array([0, 2]), np.array([10, 8]))
    assert found.innermost(np.array([0, 1, 1]), np.array([5, 5, 9])).tolist() == [0, 1, -1]
    assert found.parents().tolist() == [-1, -1]
