"""What is too long for its line is told on the blank lines below, as far as there are any."""

from __future__ import annotations

from meshscope.ui.marks.cells import Line
from meshscope.ui.timeline.folding import folded

NAME: Line = [(" ▲ ", "accent"), ("ncclDevKernel AllReduce Sum bf16", "strong")]
FACTS: Line = [("   12 µs, stream 7", "text")]
TOLD: Line = [("   waits 3 µs for rank 1; 662 µs exposed (100.0 % of it)", "text")]


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def test_a_line_that_is_too_long_goes_on_below_where_lines_are_left() -> None:
    assert texts(folded([NAME, FACTS, TOLD], 41, 6)) == [
        " ▲ ncclDevKernel AllReduce Sum bf16",
        "   12 µs, stream 7",
        "   waits 3 µs for rank 1; 662 µs exposed",
        "     (100.0 % of it)",
    ]


def test_of_too_few_lines_the_name_gets_the_last_and_nothing_more_than_fits_is_drawn() -> None:
    lines = folded([NAME, FACTS, TOLD], 27, 5)
    assert texts(lines) == [
        " ▲ ncclDevKernel AllReduce Sum bf16",
        "   12 µs, stream 7",
        "   waits 3 µs for rank 1;",
        "     662 µs exposed",
        "     (100.0 % of it)",
    ]
    assert texts(folded([NAME, FACTS, TOLD], 27, 6))[:2] == [" ▲ ncclDevKernel AllReduce", "     Sum bf16"]
    assert folded([NAME, FACTS, TOLD], 27, 3) == [NAME, FACTS, TOLD]
    assert folded([NAME, FACTS, TOLD], 27, 2) == [NAME, FACTS]
    assert folded([NAME, FACTS, TOLD], 27, 0) == []


def test_lines_that_fit_stay_as_they_are() -> None:
    assert folded([NAME, FACTS, TOLD], 80, 6) == [NAME, FACTS, TOLD]
