"""Lines of text keep to their cells, whatever is written in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from meshscope.ui.look import Look
from meshscope.ui.marks.cells import aired, cells, clip, cut, ends, filled, left, plain, right, strip, strips, wrapped

TEXT = st.text(st.sampled_from("ab 1…–±é漢字█▒·"), max_size=30)
LINE = st.lists(st.tuples(TEXT, st.sampled_from(("text", "quiet", "bad"))), max_size=6)
WIDTH = st.integers(0, 40)


@given(TEXT, WIDTH)
def test_text_takes_exactly_its_cells_on_either_side(text: str, width: int) -> None:
    assert cell_len(left(text, width)) == cell_len(right(text, width)) == width
    assert cell_len(clip(text, width)) <= width


@given(LINE, WIDTH)
def test_a_line_is_cut_to_its_width_and_filled_up_to_it(line: list[tuple[str, str]], width: int) -> None:
    assert cells(cut(line, width)) <= width
    assert cells(filled(line, width)) == width
    assert strip(line, width, Look()).cell_length == width


def test_what_is_cut_off_shows_that_it_was() -> None:
    assert clip("compute", 4) == "com…"
    assert cut([("comp", "text"), ("ute", "bad")], 5) == [("comp", "text"), ("…", "bad")]
    assert cut([("compute", "text")], 7) == [("compute", "text")]


def test_the_right_end_of_a_line_stays_where_the_left_end_is_too_long() -> None:
    line = ends([("a very long title", "text")], [("live", "good")], 12)
    assert "".join(text for text, _ in line) == "a very… live"


@given(LINE, WIDTH)
def test_ends_fill_their_width_exactly(line: list[tuple[str, str]], width: int) -> None:
    assert cells(ends(line, line, width)) == width


@given(st.text(st.sampled_from("ab  "), max_size=80), st.integers(1, 20), st.integers(1, 4))
def test_wrapped_words_fit_and_none_is_lost_but_at_the_last_line(text: str, width: int, most: int) -> None:
    lines = wrapped(text, width, most)
    assert len(lines) <= most
    assert all(cell_len(line) <= width for line in lines)
    if lines and not lines[-1].endswith("…"):
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("shown", "ascii_text"),
    [
        ("662 µs exposed (100.0 % …", "662 us exposed (100.0 %.."),
        ("all_red…", "all_re.."),
        ("all_red… 12 ms", "all_re.. 12 ms"),
        ("Reading…   ", "Reading..  "),
        (" … 3 more", ".. 3 more"),
        ("…/site-packages/torch", "..site-packages/torch"),
        ("rank 1…9 (5)", "rank 1-9 (5)"),
        ("-1.2 % … +1.2 %", "-1.2 %.. +1.2 %"),
        ("漢…", "?.."),
        ("…", "."),
        ("Done.", "Done."),
        ("61 °C", "61 C "),
    ],
)
def test_cut_text_ends_in_two_full_stops_where_there_is_no_ellipsis(shown: str, ascii_text: str) -> None:
    assert plain(shown) == ascii_text
    assert cell_len(ascii_text) == cell_len(shown)


@given(TEXT)
def test_ascii_keeps_the_cells_of_any_text(shown: str) -> None:
    assert plain(shown).isascii()
    assert len(plain(shown)) == cell_len(shown)


def test_ascii_has_as_many_cells_and_no_other_characters() -> None:
    shown = "▸ ✓ ddp 412 ± 3 · 1.9× µs … 漢 █"
    assert plain(shown).isascii()
    assert cell_len(plain(shown)) == cell_len(shown)


def test_neighbours_of_one_role_become_one_segment() -> None:
    assert len(list(strip([("a", "text"), ("b", "text"), ("c", "bad")], 3, Look()))) == 2


def test_lines_are_aired_only_where_there_is_room_for_all() -> None:
    assert aired([[("a", "text")], [("b", "text")]], 4) == [[("a", "text")], (), [("b", "text")], ()]
    assert aired([[("a", "text")], [("b", "text")]], 3) == [[("a", "text")], [("b", "text")]]


def test_strips_are_as_many_as_asked_for() -> None:
    assert len(strips([[("a", "text")]] * 9, 10, 4, Look())) == 4
    assert len(strips([], 10, 4, Look())) == 4
