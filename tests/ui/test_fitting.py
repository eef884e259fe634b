"""What stays where there is too little room: the cursor's line, and the keys that are needed most."""

from __future__ import annotations

import pytest

from meshscope.ui.fitting import keys, seen
from meshscope.ui.look import Depth, Look
from meshscope.ui.marks.cells import Line

LINES: list[Line] = [[(f"line {number}", "text")] for number in range(10)]


def shown(at: int, room: int) -> list[str]:
    return ["".join(text for text, _ in line) for line in seen(LINES, at, room, 8)]


@pytest.mark.parametrize("room", range(1, 12))
@pytest.mark.parametrize("at", range(10))
def test_the_line_of_the_cursor_is_always_seen(at: int, room: int) -> None:
    found = shown(at, room)
    assert len(found) == min(room, 10)
    assert any(line.startswith(f"line {at}") for line in found)


def test_what_is_left_out_is_told_at_the_edge() -> None:
    assert shown(0, 3) == ["line 0", "line 1", "line 2 ▾"]
    assert shown(5, 3) == ["line 4 ▴", "line 5", "line 6 ▾"]
    assert shown(9, 3) == ["line 7 ▴", "line 8", "line 9"]
    assert shown(5, 10) == [f"line {number}" for number in range(10)]
    assert shown(5, 0) == []


KEYS = (("↑↓", "move", 1), ("←→", "change", 2), ("o", "open", 3), ("q", "quit", 0))


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, " ↑↓ move  ←→ change  o open  q quit  "),
        (30, " ↑↓ move  ←→ change  q quit  "),
        (18, " ↑↓ move  q quit  "),
        (4, " q quit  "),
    ],
)
def test_the_keys_that_are_needed_least_go_first(width: int, line: str) -> None:
    assert "".join(text for text, _ in keys(KEYS, width, Look())) == line


def test_arrows_to_the_sides_are_words_in_ascii() -> None:
    line = keys(KEYS, 80, Look(is_ascii=True, depth=Depth.NONE))
    assert "left/right change" in "".join(text for text, _ in line)
