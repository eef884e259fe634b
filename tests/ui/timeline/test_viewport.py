"""Whole nanoseconds: no zoom and no pan leaves what there is, and a column is where its edge says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from meshscope.ui.timeline.viewport import Viewport, whole

runs = st.tuples(st.integers(-(10**18), 10**18), st.integers(1, 10**18), st.integers(1, 400))


def view_of(run: tuple[int, int, int]) -> Viewport:
    first, length, columns = run
    return whole(first, first + length, columns)


@given(runs, st.lists(st.tuples(st.sampled_from(["in", "out", "left", "right"]), st.integers(0, 399)), max_size=80))
def test_it_stays_at_what_there_is(run: tuple[int, int, int], moves: list[tuple[str, int]]) -> None:
    view = view_of(run)
    first, length, columns = run
    beside = max(length // 49, columns)  # about a fiftieth, or as much as all columns of a nanosecond
    low, high = first - beside, first + length + beside
    for how, column in moves:
        around = view.edge(min(column, view.columns - 1))
        if how in ("in", "out"):
            view = view.zoomed(0.5 if how == "in" else 2.0, around)
        else:
            view = view.moved((-1 if how == "left" else 1) * view.span_ns // 3)
        assert low <= view.start_ns < view.stop_ns <= high
        assert view.span_ns >= view.columns


@given(runs, st.integers(0, 399), st.integers(0, 50))
def test_a_column_holds_its_edges(run: tuple[int, int, int], column: int, zooms: int) -> None:
    view = view_of(run)
    for _ in range(zooms):
        view = view.zoomed(0.5, view.edge(min(column, view.columns - 1)))
    column = min(column, view.columns - 1)
    assert view.column(view.edge(column)) == column
    assert view.column(view.edge(column + 1) - 1) == column
    assert view.edges[column] == view.edge(column)


@given(runs, st.integers(0, 399))
def test_zooming_in_keeps_the_place_that_is_looked_at(run: tuple[int, int, int], column: int) -> None:
    """To a column; at the ends of the run the stretch cannot go on."""
    view = view_of(run)
    around = view.edge(min(column, view.columns - 1))
    nearer = view.zoomed(0.5, around)
    assert nearer.start_ns <= around < nearer.stop_ns
    if nearer.span_ns * 2 == view.span_ns:
        assert abs(nearer.column(around) - view.column(around)) <= 1


def test_down_to_a_nanosecond_a_column() -> None:
    view = whole(0, 10**12, 100)
    for _ in range(60):
        view = view.zoomed(0.5, 123_456_789_012)
    assert view.span_ns == 100
    assert view.start_ns <= 123_456_789_012 < view.stop_ns
    assert view.edges.tolist() == list(range(view.start_ns, view.stop_ns + 1))


def test_ticks_are_round() -> None:
    assert whole(0, 10_000, 100).showing(0, 1000).tick_ns(10) == 100
    assert whole(0, 10_000, 100).showing(0, 1001).tick_ns(10) == 200
