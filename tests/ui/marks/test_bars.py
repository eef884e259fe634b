"""Bars are as long as their numbers, to the cell or an eighth of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.ui.look import Look
from meshscope.ui.marks.bars import length, stacked
from meshscope.ui.marks.cells import cells

ASCII = Look(is_ascii=True)


def text(pieces: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in pieces)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.integers(1, 80))
def test_parts_that_add_up_to_one_fill_the_bar_exactly(parts: list[float], width: int) -> None:
    total = sum(parts)
    if total < 1e-6:
        return
    names = ("compute", "hidden", "exposed", "copy", "idle")
    shares = [(name, part / total) for name, part in zip(names, parts, strict=False)]
    bar = stacked(shares, width, Look())
    assert cells(bar) == width
    assert " " not in text(bar)


def test_ends_are_right_to_half_a_cell_wherever_the_bar_is_cut() -> None:
    bar = text(stacked([("compute", 0.26), ("hidden", 0.26), ("exposed", 0.26), ("idle", 0.22)], 10, Look()))
    assert bar == "███▒▒░░░··"


def test_every_part_has_a_texture_of_its_own_without_block_characters_too() -> None:
    parts = [("compute", 0.2), ("hidden", 0.2), ("exposed", 0.2), ("copy", 0.2), ("idle", 0.2)]
    assert text(stacked(parts, 10, ASCII)) == "##==xx%%.."


def test_an_unknown_part_is_nothing() -> None:
    assert text(stacked([("compute", math.nan), ("idle", 0.5)], 4, Look())) == "··  "


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [(0.5, "████    "), (1 / 64, "▏       "), (0.55, "████▍   "), (0, "        "), (2, "████████")],
)
def test_a_length_is_drawn_to_an_eighth_of_a_cell(fraction: float, shown: str) -> None:
    assert text(length(fraction, 8, "gauge", Look())) == shown


def test_a_little_is_not_nothing_in_ascii_either() -> None:
    assert text(length(0.001, 8, "gauge", ASCII)) == "#       "
    assert text(length(math.nan, 4, "gauge", ASCII)) == "    "
