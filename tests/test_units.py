"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope import units


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (99_960, "100 µs"),
        (147_200_000, "147 ms"),
        (999_600_000, "1.00 s"),
        (11_030_000, "11.0 ms"),
        (90_500_000_000, "90.5 s"),
        (3_725_000_000_000, "62 min 05 s"),
        (-2_500_000, "-2.50 ms"),
        (math.nan, "–"),
    ],
)
def test_a_duration_takes_the_unit_that_fits(value_ns: float, text: str) -> None:
    assert units.duration(value_ns) == text


@pytest.mark.parametrize(
    ("value_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.00 kB"), (10_700_000, "10.7 MB"), (61e9, "61.0 GB"), (math.nan, "–")],
)
def test_sizes_are_decimal(value_bytes: float, text: str) -> None:
    assert units.size(value_bytes) == text


def test_a_share_of_nothing_is_no_number() -> None:
    assert math.isnan(units.ratio(1, 0))
    assert units.percent(units.ratio(1, 0)) == "–"
    assert units.percent(units.ratio(31, 100)) == "31.0 %"


@given(st.text())
def test_no_text_can_steer_the_terminal(text: str) -> None:
    shown = units.printable(text)
    assert len(shown) == len(text)
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F or 0x202A <= ord(c) <= 0x202E for c in shown)


def test_ordinary_text_stays_as_it_is() -> None:
    assert units.printable("aten::mm Größe 行列") == "aten::mm Größe 行列"
    assert units.printable("\x1b]0;owned\x07") == "�]0;owned�"


def test_whole_numbers_are_told_as_ranges() -> None:
    assert units.ranges([41, 20, 21, 21, 40]) == "20–21, 40–41"
    assert units.ranges([2, 5, 6, 7]) == "2, 5–7"
    assert units.ranges(range(0, 10, 2), most=3) == "…, 4, 6, 8"
    assert units.ranges([]) == ""


def test_a_reach_whose_ends_read_alike_is_one_value() -> None:
    assert units.reach(units.size(27_480_000), units.size(27_520_000)) == "27.5 MB"
    assert units.reach("27.4 MB", "27.5 MB") == "27.4 MB to 27.5 MB"
