"""A run as lanes: which spans are on which, by which clock, and what of the communication is hidden or waits."""

from __future__ import annotations

import drawn
import made_spans
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from meeting import later, met, run_of

from meshscope.analysis.lane_rows import Lane, Rows, joined, rows
from meshscope.analysis.lane_streams import streams
from meshscope.analysis.lanes import Lanes, lanes
from meshscope.run import Run

PICTURE = """
0 compute     ####......####
0 all_reduce  ..####........
0 host        #.............
0 step        aaaaaaabbbbbbb
1 compute     ##............
1 all_reduce  ....##........
1 step        aaaaaaabbbbbbb
"""


def laid_out(run: Run) -> Lanes:
    found = lanes(run)
    assert found is not None
    return found


def covered(lane: Lane, meaning: str) -> list[tuple[int, int]]:
    layer = dict(lane.layers)[meaning]
    return list(zip(layer.start_ns.tolist(), layer.end_ns.tolist(), strict=True))


def test_each_rank_has_a_lane_for_what_it_does_and_none_for_what_it_does_not() -> None:
    found = laid_out(drawn.timeline(PICTURE, tells_wait=False))
    assert [(lane.rank, lane.role) for lane in found.lanes] == [
        (0, "compute"), (0, "collectives"), (0, "waits"), (0, "host"), (1, "compute"), (1, "collectives"),
    ]  # fmt: skip
    assert found.ranks == (0, 1)
    assert covered(found.lanes[0], "compute") == [(0, 40), (100, 140)]


def test_communication_is_hidden_or_waits_or_transfers_exposed() -> None:
    """Both end at 60; rank 1 comes at 40, so rank 0, which comes at 20, waits till then: 20 to 40 under compute."""
    found = laid_out(drawn.timeline(PICTURE, tells_wait=False))
    first, second = (lane for lane in found.lanes if lane.role == "collectives")
    assert covered(first, "hidden") == [(20, 40)]
    assert covered(first, "wait") == []
    assert covered(first, "exposed") == [(40, 60)]
    assert covered(second, "exposed") == [(40, 60)]
    assert found.exposed[0].within(0, 140) == 20
    waits = found.lane(0, "waits")
    assert waits is not None
    assert covered(waits, "wait") == [(20, 40)]
    assert found.times(0, int(waits.rows.row[0])) == (20, 60)
    assert found.lane(1, "waits") is None


def test_steps_are_those_of_the_rank_that_has_most() -> None:
    found = laid_out(drawn.timeline(PICTURE, tells_wait=False))
    assert found.steps.number.tolist() == [0, 1]
    assert found.steps.start_ns.tolist() == [0, 70]
    assert (found.start_ns, found.end_ns) == (0, 140)


def test_ranks_of_clocks_far_apart_stand_on_one() -> None:
    """Rank 1's clock is 11.56 s ahead."""
    arrival_ns = np.array([[0, 10_000_000, 20_000_000], [1_000_000, 11_000_000, 21_000_000]])
    first, second = met(arrival_ns, np.full((3,), 2_000_000))
    found = laid_out(run_of([first, later(second, 11_560_000_000)]))
    one, other = (lane.rows for lane in found.lanes if lane.role == "collectives")
    assert np.abs(one.end_ns - other.end_ns).max() < 1_000_000
    assert found.ahead_ns[1] - found.ahead_ns[0] > 11_000_000_000


def test_a_span_is_found_by_its_time_the_innermost_first() -> None:
    rows = laid_out(drawn.timeline("0 compute ####.\n0 step aaaaa")).lanes[0].rows
    assert (rows.at(0), rows.at(39), rows.at(40), rows.at(-1)) == (0, 0, -1, -1)
    assert rows.between(30, 90) == 0
    assert rows.between(40, 90) == -1


def test_nothing_profiled_has_no_lanes() -> None:
    assert lanes(drawn.run()) is None


def test_a_folded_rank_shows_each_time_once_and_what_nothing_hides() -> None:
    """Copies alone only where neither computes nor communicates; hidden communication is under compute."""
    found = laid_out(
        drawn.timeline("0 compute ####......\n0 all_reduce ..####....\n0 copy .......##.\n0 step aaaaaaaaaa")
    )
    folded = found.folded[0]
    assert [(meaning, covered(folded, meaning)) for meaning, _ in folded.layers] == [
        ("compute", [(0, 40)]), ("wait", []), ("exposed", [(40, 60)]), ("copy", [(70, 90)]),
    ]  # fmt: skip
    assert folded.rows.start_ns.tolist() == [0, 20, 70]
    assert folded.covered_ns(0, 100) == 40 + 20 + 20
    assert folded.covered_ns(30, 80, "compute", "copy") == 10 + 10


def test_a_rank_without_a_device_folds_to_its_host() -> None:
    found = laid_out(drawn.timeline("0 host ###.\n0 step aaaa"))
    assert [meaning for meaning, _ in found.folded[0].layers] == ["host"]


def test_how_late_a_rank_comes_is_told_of_any_stretch() -> None:
    """To three collectives by 0, 2 and 1 ms after the median rank, which is the earlier of the two."""
    arrival_ns = np.array([[0, 10_000_000, 20_000_000], [0, 12_000_000, 21_000_000]])
    found = laid_out(run_of(met(arrival_ns, np.full(3, 2_000_000))))
    late = found.late[1]
    assert [late.within(*stretch) for stretch in ((0, 11_000_000), (11_000_000, 20_000_000), (0, 10**9))] == [
        0, 2_000_000, 3_000_000,
    ]  # fmt: skip
    assert found.late[0].within(0, 10**9) == 0


def test_a_lane_by_its_streams_has_each_span_once_and_each_layer_in_parts() -> None:
    spans = [
        made_spans.kernel(0, 30, lane="stream 20"), made_spans.kernel(10, 50, lane="stream 7"),
        made_spans.collective(40, 60, lane="stream 20"), made_spans.collective(50, 90, lane="stream 9"),
    ]  # fmt: skip
    later = [made_spans.kernel(200, 210, lane="stream 7"), made_spans.kernel(210, 230, lane="other")]
    found = laid_out(drawn.run(windows=[made_spans.window(spans), made_spans.window(later)]))
    compute = found.lane(0, "compute")
    assert compute is not None
    parts = streams(found, compute)
    assert [part.branch for part in parts] == ["other", "stream 7", "stream 20"]
    assert [part.rows.start_ns.tolist() for part in parts] == [[210], [10, 200], [0]]
    collectives = found.lane(0, "collectives")
    assert collectives is not None
    first, second = streams(found, collectives)
    assert (first.branch, covered(first, "hidden"), covered(first, "exposed")) == ("stream 9", [], [(50, 90)])
    assert (second.branch, covered(second, "hidden"), covered(second, "exposed")) == (
        "stream 20", [(40, 50)], [(50, 60)],
    )  # fmt: skip
    assert streams(found, compute) is streams(found, compute)


spans_of_rows = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=200)


def rows_of(spans: list[tuple[int, int]]) -> Rows:
    start_ns = np.array([start for start, _ in spans], dtype=np.int64)
    length_ns = np.array([length for _, length in spans], dtype=np.int64)
    number = np.arange(len(spans), dtype=np.int64)
    return rows(start_ns, start_ns + length_ns, np.zeros(len(spans), dtype=np.int32), number)


@given(spans_of_rows, st.integers(-5, 100))
def test_the_span_at_a_time_is_the_last_begun_of_those_that_cover_it(spans: list[tuple[int, int]], time: int) -> None:
    found = rows_of(spans)
    starts, ends = found.start_ns.tolist(), found.end_ns.tolist()
    covering = [at for at in range(len(spans)) if starts[at] <= time < ends[at]]
    assert found.at(time) == (covering[-1] if covering else -1)


@given(spans_of_rows, st.integers(-5, 100), st.integers(1, 40))
def test_the_span_of_a_stretch_is_the_longest_in_it(spans: list[tuple[int, int]], start: int, length: int) -> None:
    found, stop = rows_of(spans), start + length
    rows_in = zip(found.start_ns.tolist(), found.end_ns.tolist(), strict=True)
    lengths = [e - s for s, e in rows_in if s < stop and (e > start or s >= start)]
    at = found.between(start, stop)
    assert (int(found.end_ns[at] - found.start_ns[at]) if at >= 0 else None) == max(lengths, default=None)


@given(spans_of_rows)
def test_from_the_longest_on_every_span_comes_once_and_back_again(spans: list[tuple[int, int]]) -> None:
    found = rows_of(spans)
    seen, at = [], found.longest(0, len(found))
    while at >= 0:
        seen.append(at)
        at = found.longest(0, len(found), after=at, by=1)
    lengths = (found.end_ns - found.start_ns).tolist()
    assert seen == sorted(range(len(spans)), key=lambda place: (-lengths[place], place))
    for after, before in zip(seen[:0:-1], seen[-2::-1], strict=True):
        assert found.longest(0, len(found), after=after, by=-1) == before


def test_spans_of_several_lanes_are_found_again_where_they_are_joined() -> None:
    both = joined([rows_of([(5, 3), (9, 1)]), rows_of([(5, 1), (7, 9)])])
    assert both.start_ns.tolist() == [5, 5, 7, 9]
    assert both.reach_ns.tolist() == [8, 8, 16, 16]
    assert both.place(0, 1, 9) == 3
    assert both.place(0, 1, 8) == -1
