"""Only the cells that differ are painted again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style

from meshscope.ui.canvas import changed

RED, BLUE = Style(color="red"), Style(color="blue")
LINE = st.lists(st.builds(Segment, st.text("ab漢", min_size=1, max_size=4), st.sampled_from((RED, BLUE))), max_size=4)


def test_the_same_line_needs_no_paint() -> None:
    assert changed([Segment("abc", RED)], [Segment("abc", RED)]) is None


def test_only_the_cells_between_the_first_and_the_last_difference_do() -> None:
    old = [Segment("step ", RED), Segment("41", BLUE), Segment(" of 60", RED)]
    new = [Segment("step ", RED), Segment("42", BLUE), Segment(" of 60", RED)]
    assert changed(old, new) == (6, 7)


def test_another_colour_is_a_difference() -> None:
    assert changed([Segment("abc", RED)], [Segment("abc", BLUE)]) == (0, 3)


def _cells(line: list[Segment]) -> list[tuple[str, Style | None]]:
    return [(c, segment.style) for segment in line for c in segment.text for _ in range(2 if c == "漢" else 1)]


@given(LINE, LINE)
def test_cells_outside_the_change_are_the_same(old: list[Segment], new: list[Segment]) -> None:
    before, after = _cells(old), _cells(new)
    if len(before) != len(after):
        return
    start, end = changed(old, new) or (0, 0)
    assert before[:start] == after[:start]
    assert before[end:] == after[end:]
