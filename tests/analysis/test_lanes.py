"""A run as lanes: which spans are on which, by which clock, and what of the communication is hidden or waits."""

from __future__ import annotations

import drawn
import numpy as np
from meeting import later, met, run_of

from meshscope.analysis.lanes import Lane, Lanes, lanes
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
        (0, "compute"), (0, "collectives"), (0, "host"), (1, "compute"), (1, "collectives"),
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
    assert found.exposed[0].total_ns == 20


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
