"""What keys make of a state that stays where it is: lanes opened and folded, ranks sorted, the way back, new data."""

from __future__ import annotations

from dataclasses import replace

import drawn
import made_spans
import numpy as np
import pytest
from meeting import met, run_of

from meshscope.analysis.lanes import Lanes, lanes
from meshscope.run import Run
from meshscope.ui.timeline import drawing, listing, ranking, state
from meshscope.ui.timeline.beginning import begun, carried
from meshscope.ui.timeline.searching import search
from meshscope.ui.timeline.state import State
from meshscope.ui.timeline.viewport import whole

PICTURE = """
0 compute     ####......####..
0 all_reduce  ..####...##.....
0 step        aaaaaaaabbbbbbbb
1 compute     ##......######..
1 all_reduce  ....##...##.....
1 step        aaaaaaaabbbbbbbb
"""


def laid_out(run: Run) -> Lanes:
    found = lanes(run)
    assert found is not None
    return found


def opened(run: Run) -> tuple[Lanes, State]:
    found = laid_out(run)
    return found, begun(found, whole(found.start_ns, found.end_ns, 80))


def late(count: int) -> Run:
    """Rank r comes r µs after rank 0, to both of two collectives."""
    arrival_ns = np.arange(count, dtype=np.int64)[:, None] * 1000 + np.array([[0, 1_000_000]])
    return run_of(met(arrival_ns, np.array([200_000, 200_000])))


def listed(found: Lanes, now: State) -> list[tuple[int, str, str]]:
    return [(lane.rank, lane.role, lane.branch) for lane in listing.visible(found, now)]


def test_lanes_are_named_anew_for_another_stretch_or_order_and_not_where_the_cursor_alone_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, now = opened(late(64))
    now = ranking.sorted_by(found, now, ranking.LATE)
    rows, written = listing.visible(found, now)[:20], []
    name = drawing._name
    monkeypatch.setattr(drawing, "_name", lambda lane, *told: written.append(lane.rank) or name(lane, *told))
    for there, count in (
        (now, 20),
        (state.time_moved(now, 1), 20),
        (state.zoomed(now, 0.5), 40),
        (ranking.sorted_by(found, now, ranking.RANK), 60),
    ):
        drawing.names(found, rows, there, drawing.place(120))
        assert len(written) == count
    assert drawing.names(found, rows, now, drawing.place(120))[0].split()[0] == "63", "who is latest stands first"


def on_streams() -> Run:
    return drawn.run(
        windows=[
            made_spans.window(
                [
                    made_spans.kernel(0, 30),
                    made_spans.kernel(10, 50, lane="stream 20"),
                    made_spans.collective(20, 60, lane="stream 9"),
                ]
            )
        ]
    )


def test_a_lane_opens_into_its_streams_and_closes_again() -> None:
    found, now = opened(on_streams())
    assert listed(found, now) == [(0, "compute", ""), (0, "collectives", "")]
    now = listing.toggled(found, now)
    streams = [(0, "compute", "stream 7"), (0, "compute", "stream 20")]
    assert listed(found, now) == [(0, "compute", ""), *streams, (0, "collectives", "")]
    now = listing.lane_moved(found, now, 2)
    assert listing.current(found, now).branch == "stream 20"
    assert listing.current(found, now).covered_ns(0, 100) == 40
    now = listing.toggled(found, now)
    assert listed(found, now) == [(0, "compute", ""), (0, "collectives", "")]
    assert listing.current(found, now).role == "compute"


def test_what_is_open_stays_open_while_the_rank_is_folded() -> None:
    found, now = opened(on_streams())
    now = listing.rank_toggled(found, listing.toggled(found, now))
    assert listed(found, now) == [(0, "all", "")]
    now = listing.toggled(found, now)
    assert len(listed(found, now)) == 4


def test_all_ranks_fold_and_unfold() -> None:
    found, now = opened(drawn.timeline(PICTURE))
    assert len(listed(found, now)) == 5  # rank 0 waits for rank 1
    one = listing.rank_toggled(found, now)
    assert [lane for lane in listed(found, one) if lane[0] == 0] == [(0, "all", "")]
    both = listing.all_toggled(found, one)
    assert listed(found, both) == [(0, "all", ""), (1, "all", "")]
    assert len(listed(found, listing.all_toggled(found, both))) == 5


def test_ranks_are_sorted_by_what_is_on_the_screen() -> None:
    """0 is exposed 40–60 and 90–100, 1 40–60 and 100–110 is hidden; 0 is busy 110 ns, 1 120 of 160."""
    found, now = opened(drawn.timeline(PICTURE))
    now = replace(now, view=now.view.showing(0, 160))
    scores = {sort: [ranking.score_ns(found, now, sort, rank) for rank in (0, 1)] for sort in ranking.SORTS}
    assert scores["exposed"] == [30 + 0, 20]
    assert scores["busy"] == [40 + 30 + 40, 20 + 20 + 60]
    assert ranking.sorted_by(found, now, "exposed").shown == (0, 1)
    there = replace(now, sort="exposed", shown=(1, 0))
    assert ranking.sorted_by(found, there, there.sort).shown == (0, 1)
    sorts = [now.sort]
    for _ in ranking.SORTS:
        now = ranking.resorted(found, now)
        sorts.append(now.sort)
    assert sorts == ["rank", "late", "exposed", "busy", "rank"]


def test_many_ranks_begin_folded_the_latest_first() -> None:
    found, now = opened(late(20))
    assert now.sort == "late"
    assert now.shown[:3] == (19, 18, 17)
    assert listing.current(found, now).rank == 19
    assert all(role == "all" for _, role, _ in listed(found, now))
    assert ranking.score_ns(found, replace(now, view=now.view.showing(0, 500_000)), "late", 19) == 10_000


def test_the_way_back_leads_to_where_the_cursor_was() -> None:
    found, now = opened(drawn.timeline(PICTURE))
    del found
    there = state.departed(now, state.gone(now, 150))
    further = state.departed(there, state.gone(there, 30))
    assert state.departed(now, now).trail == ()
    back = state.returned(further)
    assert back is not None
    assert back.at_ns == 150
    first = state.returned(back)
    assert first is not None
    assert (first.at_ns, first.trail) == (now.at_ns, ())
    assert state.returned(first) is None


def test_the_way_back_goes_round_a_rank_that_is_filtered_out() -> None:
    found, now = opened(drawn.timeline(PICTURE))
    there = state.departed(now, replace(state.gone(now, 150), rank=1, role="collectives"))
    back = state.returned(ranking.filtered(found, there, "1"))
    assert back is not None
    assert (back.at_ns, back.rank, back.role) == (now.at_ns, 1, "collectives")


def test_a_bookmark_in_the_column_of_the_cursor_is_taken_away() -> None:
    found, now = opened(drawn.timeline(PICTURE))
    del found
    now = replace(now, view=now.view.showing(0, 160), at_ns=11)
    assert now.view.column(10) == now.view.column(11)
    kept = state.bookmarked(replace(now, bookmarks=(10, 90)))
    assert kept.bookmarks == (90,)
    assert state.bookmarked(kept).bookmarks == (11, 90)
    there = state.next_bookmark(kept)
    assert there is not None
    assert there.at_ns == 90
    assert state.next_bookmark(now) is None


def two_cycles() -> tuple[Run, Run]:
    """The same window of rank 0 alone, and then with rank 1 and a second window before it in number."""
    first, second = drawn.windows(PICTURE)
    before = drawn.run(windows=[second])
    return before, drawn.run(windows=[first, second, second.shifted(200)])


def test_what_is_new_leaves_the_stretch_the_cursor_and_the_marks_where_they_are() -> None:
    before, after = two_cycles()
    old, now = opened(before)
    now = replace(now, at_ns=40, role="collectives", pinned=(0, 1), marks=(20, 60), search=search(old, "all_reduce"))
    now = state.departed(now, replace(now, view=now.view.showing(10, 100), at_ns=20))
    now = replace(now, at_ns=40)
    new = laid_out(after)
    there = carried(old, new, now)
    assert (there.view.start_ns, there.view.stop_ns) == (10, 100)
    assert (there.at_ns, there.rank, there.role, there.marks) == (40, 1, "collectives", (20, 60))
    assert there.pinned == (1, 1)  # rank 0's window comes before it
    assert there.shown == (0, 1)
    assert there.view.last_ns >= new.end_ns
    assert there.search is not None
    assert there.search.count == 6
    back = state.returned(there)
    assert back is not None
    assert back.pinned == (1, 1)


def test_a_filter_lets_no_new_rank_in_and_a_clock_that_is_wound_back_takes_ranks_away() -> None:
    before, after = two_cycles()
    old, now = opened(before)
    assert carried(old, laid_out(after), ranking.filtered(old, now, "1")).shown == (1,)
    new, both = opened(after)
    there = carried(new, old, replace(both, rank=0, pinned=(0, 0)))
    assert (there.shown, there.rank, there.pinned) == ((1,), 1, None)
