"""Collectives by the axis of a mesh: which groups belong together, and what is added up over them."""

from __future__ import annotations

import pytest
from made_spans import Made, collective, kernel, window
from meeting import MS, groups, run_of

from meshscope.analysis.axes import Axis, axes
from meshscope.reports.axes_text import axes_lines
from meshscope.run import Run

ROWS, COLUMNS = ((0, 1), (2, 3)), ((0, 2), (1, 3))
GROUPS = groups(*ROWS, *COLUMNS)


def named(members: tuple[int, ...]) -> str:
    return next(group.name for group in GROUPS if group.ranks == members)


def spans(rank: int) -> list[Made]:
    """In a step of 100 ms: along its row two gathers of 10 ms, the second under compute, along its column 20 ms."""
    row, column = (next(named(one) for one in axis if rank in one) for axis in (ROWS, COLUMNS))
    return [
        collective(0, 10 * MS, None, "all_gather", group=row),
        kernel(10 * MS, 20 * MS),
        collective(10 * MS, 20 * MS, None, "all_gather", group=row),
        collective(30 * MS, 50 * MS, None, "reduce_scatter", group=column),
        # After the step's end: no part of it.
        collective(100 * MS, 130 * MS, None, "reduce_scatter", group=column),
    ]


def mesh(ranks: int = 4) -> Run:
    about = {"steps": [(0, 100 * MS)], "world": 4, "host": "one", "process_groups": GROUPS}
    return run_of([window(spans(rank), rank=rank, **about) for rank in range(ranks)], ranks=4)


def test_groups_of_one_stride_are_of_one_axis() -> None:
    assert axes(mesh()) == (
        Axis(ROWS, ("all_gather",), count=8, busy_ns=20 * MS, exposed_ns=10 * MS, wait_ns=0.0),
        Axis(COLUMNS, ("reduce_scatter",), count=4, busy_ns=20 * MS, exposed_ns=20 * MS, wait_ns=0.0),
    )


def test_waiting_is_not_known_of_an_axis_whose_other_ranks_are_not_here() -> None:
    """Of rank 0 and 1 alone the row can be matched, and no column."""
    row, column = axes(mesh(ranks=2))
    assert (row.groups, row.wait_ns) == (ROWS[:1], 0.0)
    assert (column.groups, column.wait_ns) == (COLUMNS, None)


def test_one_axis_is_no_mesh() -> None:
    only = [one for one in spans(0) if one.group == named((0, 1)) or not one.group]
    about = {"steps": [(0, 100 * MS)], "process_groups": GROUPS}
    found = axes(run_of([window(only, rank=0, **about)]))
    assert found == ()
    assert axes_lines(found, "wait") == []


@pytest.mark.parametrize("says", ["2 × 2 (0–1; 2–3)", "2 × 2 (0, 2; 1, 3)", "reduce-scatter"])
def test_the_report_names_the_groups_and_what_they_call(says: str) -> None:
    lines = axes_lines(axes(mesh()), "wait")
    assert says in "\n".join(lines)
    assert max(map(len, lines)) <= 80
