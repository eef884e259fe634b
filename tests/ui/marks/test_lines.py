"""Sparklines, charts and tables."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import cells
from meshscope.ui.marks.chart import area, columns, marks
from meshscope.ui.marks.sparkline import binned, level, sparkline
from meshscope.ui.marks.table import Column, heading, placed, row

ASCII = Look(is_ascii=True)


def text(pieces: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in pieces)


def test_a_sparkline_goes_from_its_lowest_mark_to_a_full_cell() -> None:
    (line,) = sparkline([0, 1, 2, 3, 4, 5, 6, 7, 8], 9, Look(), low=0, high=8)
    assert text(line) == "▁▁▂▃▄▅▆▇█"


def test_a_gap_in_a_series_shows_as_a_gap() -> None:
    (line,) = sparkline([1.0, math.nan, 1.0], 3, Look(), low=0, high=1)
    assert text(line) == "█·█"
    assert text(sparkline([1.0, math.nan], 2, ASCII, low=0, high=1)[0]) == "#."


def test_two_lines_of_a_sparkline_have_sixteen_levels() -> None:
    top, bottom = sparkline([1, 9, 16] * 20, 60, Look(), low=0, high=16, height=2)
    assert text(top)[:3] == " ▁█"
    assert text(bottom)[:3] == "▁██"


@given(st.integers(1, 400), st.integers(1, 50))
def test_a_growing_series_keeps_the_cells_it_has_until_the_line_halves(count: int, width: int) -> None:
    before = binned(np.arange(count, dtype=float), width)
    after = binned(np.arange(count + 1, dtype=float), width)
    assert len(after) <= width
    size = math.ceil(count / len(before))
    if math.ceil((count + 1) / size) <= width:
        np.testing.assert_array_equal(before[:-1], after[: len(before) - 1])


def test_levels_stay_within_their_range() -> None:
    assert [level(value, 0, 10, 8) for value in (-5, 0, 5, 10, 99)] == [1, 1, 4, 8, 8]
    assert level(5, 5, 5, 8) == 1


def drawn(took: list[float], marked: list[bool], *, planned: int, width: int, height: int, look: Look) -> list[str]:
    given_columns = columns(
        np.arange(len(took), dtype=np.int32), np.array(took), np.array(marked), planned=planned, width=width
    )
    lines = area(
        given_columns, height, look, top=4.0, label=lambda v: f"{v:g}", gutter=3, role="gauge", marked_role="bad"
    )
    return [text(line) for line in [*lines, marks(given_columns, 3, "bad")]]


def test_a_chart_stands_on_zero_and_marks_what_is_marked() -> None:
    assert drawn([2, 4, 3, 9], [False, True, False, False], planned=4, width=4, height=2, look=Look()) == [
        " 4  ▓▄▲",
        " 0 █▓██",
        "    ▴  ",
    ]


def test_a_chart_in_ascii_has_no_block_characters() -> None:
    lines = drawn([2, 4, 1.5], [False, True, False], planned=3, width=3, height=2, look=ASCII)
    assert lines[:2] == [" 4  o ", " 0 #o#"]


def test_a_column_keeps_its_place_while_steps_come_in() -> None:
    half = drawn([2, 2], [False] * 2, planned=8, width=16, height=1, look=Look())[0]
    full = drawn([2] * 8, [False] * 8, planned=8, width=16, height=1, look=Look())[0]
    assert half[: 3 + 4] == full[: 3 + 4]
    assert half[3 + 4 :].isspace()


def test_of_several_steps_in_a_column_the_slowest_is_seen() -> None:
    assert drawn([1, 4, 1, 1], [False] * 4, planned=4, width=2, height=1, look=Look())[0].endswith("█▂")


COLUMNS = (
    Column("name", "name", 6, is_text=True),
    Column("bar", "bar", 4, is_text=True, grows=True, most=10),
    Column("size", "size", 5, rank=1),
    Column("aside", "aside", 5, rank=2),
)


def test_columns_leave_by_rank_when_room_is_short() -> None:
    assert [place.column.name for place in placed(COLUMNS, 40)] == ["name", "bar", "size", "aside"]
    assert [place.column.name for place in placed(COLUMNS, 20)] == ["name", "bar", "size"]
    assert [place.column.name for place in placed(COLUMNS, 12)] == ["name", "bar"]


@given(st.integers(12, 60))
def test_a_table_never_goes_beyond_its_width(width: int) -> None:
    places = placed(COLUMNS, width)
    assert places[-1].start + places[-1].width <= width
    assert cells(heading(places)) <= width


def test_numbers_stand_at_the_right_of_their_column_and_text_at_the_left() -> None:
    places = placed(COLUMNS, 26)
    line = text(
        row(places, {"name": [("ddp", "text")], "size": [("12", "text")], "aside": [("a", "text"), ("b", "quiet")]})
    )
    assert line == "ddp     " + " " * 4 + "     12     ab"[:14]
