"""Columns of time as cells: what is most in each, how full it is, and neighbours as one segment."""

from __future__ import annotations

import drawn
import numpy as np
import pytest

from meshscope.analysis.lane_rows import Lane, rows
from meshscope.analysis.lanes import lanes
from meshscope.ui.look import Look
from meshscope.ui.timeline.codes import BLANK, UNSEEN, codes, mark_unseen, segments
from meshscope.ui.timeline.viewport import whole


def cells(picture: str, columns: int, start: int, stop: int, look: Look | None = None) -> list[str]:
    found = lanes(drawn.timeline(picture))
    assert found is not None
    view = whole(found.start_ns, found.end_ns, columns).showing(start, stop)
    assert (view.start_ns, view.stop_ns) == (start, stop)
    drawn_codes = codes(found.lanes, view)
    return ["".join(segment.text for segment in row) for row in segments(drawn_codes, look or Look())]


PICTURE = """
0 compute     ####......####..
0 all_reduce  ..####...##.....
0 copy        ..............#.
0 step        aaaaaaaabbbbbbbb
"""


def test_a_column_shows_what_it_is_mostly_made_of() -> None:
    """Ten columns of 16 ns: 0–16 … Compute 0–40 and 100–140, hidden 20–40 and 100–110, exposed 40–60 and 90–100."""
    assert cells(PICTURE, 10, 0, 160) == ["██▌   ███ ", " ▒▒░ ░▒   ", "        ▏▚"]


@pytest.mark.parametrize(("width", "sign"), [(20, "▏"), (50, "▌"), (80, "█")])
def test_a_column_shows_how_full_it_is(width: int, sign: str) -> None:
    """One mark of 10 ns stands at the beginning of a column of 100 ns; less than a third, than two thirds, or more."""
    marks = "#" * (width // 10)
    [row] = cells(f"0 compute {marks:.<39}#\n0 step {'a' * 40}", 4, 0, 400)
    assert row == f"{sign}  ▏"


def test_the_least_span_shows_where_a_column_is_a_thousand_times_as_long() -> None:
    start_ns = np.array([500_000], dtype=np.int64)
    found = rows(start_ns, start_ns + 1, np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int64))
    from meshscope.analysis.coverage import coverage
    from meshscope.intervals import Intervals

    lane = Lane(0, "compute", (("compute", coverage(Intervals(found.start_ns, found.end_ns))),), (found,))
    empty = Lane(0, "copies", (("copy", coverage(Intervals(start_ns[:0], start_ns[:0]))),), (found,))
    drawn_codes = codes([empty, lane, empty], whole(0, 1_000_000, 10).showing(0, 1_000_000))
    assert ["".join(part.text for part in row) for row in segments(drawn_codes, Look())] == [
        " " * 10, "     ▏    ", " " * 10,
    ]  # fmt: skip


def test_neighbours_of_one_kind_are_one_segment_and_no_lane_runs_into_the_next() -> None:
    found = np.array([[0, 0, 2, 2], [2, 2, 2, 62]], dtype=np.uint8)
    assert [[len(part.text) for part in row] for row in segments(found, Look())] == [[2, 2], [3, 1]]


def test_in_ascii_every_meaning_has_a_sign_of_its_own() -> None:
    signs = {row.strip()[:1] for row in cells(PICTURE, 16, 0, 160, Look(is_ascii=True))}
    assert signs == {"#", "=", "%"}


def test_what_was_not_profiled_does_not_look_idle() -> None:
    """Rank 0 from 0 to 60 and from 100 to 130 ns, rank 1 from 20 to 60; columns of 10 ns."""
    first, second = drawn.windows("0 compute ##..##\n0 step aaaaaa\n1 compute ..##..\n1 step ..aaaa")
    again = drawn.windows("0 compute #.#\n0 step aaa")[0].shifted(100)
    found = lanes(drawn.run(windows=[first, again, second]))
    assert found is not None
    assert (found.start_ns, found.end_ns) == (0, 130)
    view = whole(0, 130, 15).showing(-10, 140)
    drawn_codes = codes(found.lanes, view)
    mark_unseen(drawn_codes, found.lanes, found.profiled, view)
    signs = {BLANK: " ", UNSEEN: "~"}
    assert ["".join(signs.get(code, "#") for code in row) for row in drawn_codes.tolist()] == [
        "~##  ##~~~~# #~",
        "~~~##  ~~~~~~~~",
    ]
