"""Area charts in their three forms and the axis below them, cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.axis import across
from meshscope.ui.marks.cells import cells, strip
from meshscope.ui.marks.chart import columns
from meshscope.ui.marks.dots import dotted
from meshscope.ui.marks.heat import heat_heading, heat_scale, heat_strip
from meshscope.ui.marks.sparkline import skyline

ASCII = Look(is_ascii=True)
LEVELS = (0.02, 0.05, 0.1, 0.2)


def text(pieces: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in pieces)


def area(values: list[float], width: int, look: Look, *, height: int = 1, form: str = "braille") -> list[str]:
    draw = dotted if form == "braille" else skyline
    return [text(line) for line in draw(np.array(values), width, look, low=0.0, high=8.0, height=height)]


def test_a_braille_cell_holds_two_values_of_four_dots() -> None:
    # 2 of 8 are one dot, 4 two, 6 three, 8 four; the left column is dots 7, 3, 2, 1, the right one 8, 6, 5, 4.
    assert area([2, 4, 6, 8], 2, Look()) == ["\u28e0\u28fe"]
    assert area([0, 8], 1, Look()) == ["\u28f8"], "what was measured has its lowest dot"
    assert area([8, 8, 8], 3, Look()) == ["\u28ff\u2847 "], "the last column may be the left half of a cell"


def test_a_braille_area_of_two_lines_has_eight_levels() -> None:
    assert area([4, 5, 8, 8], 2, Look(), height=2) == [" \u28ff".replace(" ", "\u2880"), "\u28ff\u28ff"]


def test_a_gap_has_no_dots_and_a_cell_of_gaps_is_told_from_a_low_value() -> None:
    assert area([math.nan, 8, math.nan, math.nan], 2, Look()) == ["\u28b8\u00b7"]
    assert area([math.nan] * 4, 2, Look(), height=2) == ["  ", "\u00b7\u00b7"]


def test_in_ascii_a_cell_has_the_larger_of_its_two() -> None:
    assert area([1, 8, 2, math.nan, math.nan, math.nan], 3, ASCII) == ["#,."]
    assert "".join(area([1, 8, 2, 3], 2, ASCII)).isascii()


def test_the_block_form_has_eight_levels_a_cell_and_rounds_up() -> None:
    assert area([1, 4, 4.1, 8], 4, Look(), form="block") == ["\u2581\u2584\u2585\u2588"]


@given(st.lists(st.one_of(st.floats(0, 8), st.just(math.nan)), max_size=40), st.integers(1, 12), st.integers(1, 3))
def test_every_form_fills_its_cells_exactly(values: list[float], width: int, height: int) -> None:
    for look in (Look(), ASCII):
        lines = dotted(np.array(values), width, look, low=0.0, high=8.0, height=height)
        assert [cells(line) for line in lines] == [width] * height


def test_numbers_stand_where_their_columns_begin_and_the_unit_at_the_end() -> None:
    line = text(across(60, 30, "step"))
    assert line == "0    10   20   30   40    step"
    for number in (0, 10, 20, 30, 40):
        marked = columns(
            np.array([number], dtype=np.int32), np.array([1.0]), np.array([False]), planned=60, width=30
        ).value
        assert line.index(str(number)) == int(np.flatnonzero(~np.isnan(marked))[0])


@given(st.integers(1, 100_000), st.integers(1, 200), st.sampled_from(("", "step", "ms")))
def test_an_axis_never_cuts_a_number_nor_leaves_its_line(total: int, width: int, unit: str) -> None:
    line = text(across(total, width, unit, gutter=3))
    assert len(line) == width + 3
    for number in (int(word) for word in line.split() if word.isdigit()):
        assert 0 <= number < total
        assert line[number * width // total + 3 :].split()[0] == str(number)


@pytest.mark.parametrize("depth", list(Depth))
def test_a_heat_strip_tells_its_levels_by_character_in_every_depth_of_colour(depth: Depth) -> None:
    found = heat_strip(np.array([0.0, 0.02, 0.05, 0.1, 0.2, math.nan]), 6, LEVELS, Look(depth=depth))
    assert text(found) == "\u00b7\u2591\u2592\u2593\u2588 "
    assert [role for _, role in found] == ["heat0", "heat1", "heat2", "heat3", "heat4", "text"]
    colours = {str(segment.style.color) for segment in strip(found, 6, Look(depth=depth)) if segment.style}
    assert (len(colours) > 2) == (depth is not Depth.NONE)


def test_a_heat_strip_keeps_the_worst_of_what_shares_a_cell_to_the_last_column() -> None:
    assert text(heat_strip(np.array([0.0, 0.2, 0.0, 0.0, 0.05]), 3, LEVELS, Look())) == "\u2588\u00b7\u2592"
    assert heat_heading(range(5), 3) == "0–4"
    assert heat_heading(range(200), 50) == "step 0" + " " * 41 + "199"
    assert text(heat_scale(LEVELS, ASCII)) == " : 2 + 5 * 10 # 20"
