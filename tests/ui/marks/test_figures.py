"""Numbers below one another: one unit for a column, their points in one line, digits kept."""

from __future__ import annotations

import math

import pytest

from meshscope.ui.marks.figures import alike, in_line, pieces
from meshscope.ui.marks.table import Column, placed, rows
from meshscope.units import MILLISECONDS, UNKNOWN, duration_of, durations, size_unit, time_unit

MS, S = 1_000_000, 1_000_000_000


@pytest.mark.parametrize(
    ("values_ns", "written"),
    [
        ((2_000, 61 * MS), ["0.00200 ms", "61.0 ms"]),
        ((430, 12_300), ["0.43 µs", "12.3 µs"]),
        ((12,), ["12 ns"]),
        ((999_600, 3), ["1.00 ms", "0.000003 ms"]),
        ((77.6 * MS, 71 * S), ["0.0776 s", "71.0 s"]),
        ((0, 5 * MS), ["0 ms", "5.00 ms"]),
        ((math.nan, 5 * MS), [UNKNOWN, "5.00 ms"]),
        ((-3 * MS, 1_000), ["-3.00 ms", "0.00100 ms"]),
    ],
)
def test_durations_that_are_read_together_have_the_unit_of_the_longest(
    values_ns: tuple[float, ...], written: list[str]
) -> None:
    assert list(durations(*values_ns)) == written


def test_a_part_stands_beside_its_whole_in_one_unit() -> None:
    assert duration_of(340_000, 12.1 * MS) == "0.34 of 12.1 ms"


def test_sizes_have_the_unit_of_the_largest() -> None:
    sizes = [10_700_000, 1_020_000_000]
    assert [size_unit(sizes).written(value) for value in sizes] == ["0.0107 GB", "1.02 GB"]
    assert size_unit([]).name == "B"


def test_points_stand_in_one_line_and_what_is_not_known_ends_where_whole_numbers_do() -> None:
    lined = in_line(["27.6", "1.58", "123", UNKNOWN], 8)
    assert lined == ["27.6 ", "1.58", "123   ", "–   "]
    right = [text.rjust(8) for text in lined]
    assert right == ["   27.6 ", "    1.58", "  123   ", "    –   "]


def test_units_behind_numbers_are_no_part_of_where_the_point_is() -> None:
    lined = [text.rjust(9) for text in in_line(["107 MB", "12.3 MB", "1.23 MB"], 9)]
    assert lined == ["107 MB   ", " 12.3 MB ", "  1.23 MB"]


@pytest.mark.parametrize("texts", [["1–3", "12–14"], ["3/12", "10/12"], ["12 min 30 s", "5.00 s"], ["eager", "1.5"]])
def test_what_is_more_than_a_number_is_left_as_it_is(texts: list[str]) -> None:
    assert in_line(texts, 20) == texts


@pytest.mark.parametrize(
    ("width", "expected"), [(9, ["58.0", "0.00200"]), (7, ["58.0", "0.0020"]), (5, ["58.0", "0.00"])]
)
def test_where_cells_are_too_few_decimals_are_lost_and_no_digit_is_cut(width: int, expected: list[str]) -> None:
    values = [58 * MS, 2_000]
    write = alike(values, MILLISECONDS, width, is_bare=True)
    assert [write(value) for value in values] == expected
    assert all(len(text) <= width for text in in_line([write(value) for value in values], width))


def test_a_table_lines_up_numbers_and_leaves_text_and_what_stands_behind() -> None:
    columns = placed((Column("name", "name", 4, is_text=True), Column("mean", "mean", 10)), 16)
    lines = rows(
        columns,
        [
            {"name": [("1.5", "text")], "mean": [("77.6", "text"), (" ± 1", "quiet")]},
            {"name": [("12", "text")], "mean": [("147", "text"), (" ± 3", "quiet")]},
        ],
    )
    assert ["".join(text for text, _ in line) for line in lines] == [
        "1.5     77.6 ± 1",
        "12     147   ± 3",
    ]


def test_the_blanks_behind_a_number_are_no_part_of_it() -> None:
    assert pieces("147  ", "strong") == [("147", "strong"), ("  ", "text")]
    assert pieces("77.6", "strong") == [("77.6", "strong")]


def test_the_unit_is_that_of_what_is_known() -> None:
    assert time_unit([math.nan, 5 * MS]).name == "ms"
    assert time_unit([math.nan]).name == "ns"
