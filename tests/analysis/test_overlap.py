"""Collectives, hidden and exposed, from drawings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn import run, timeline, windows

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.collectives import collectives
from meshscope.analysis.exposure import exposure
from meshscope.analysis.overlap import exposed_in, overlap
from meshscope.run import Run

TWO_KINDS = """
    0 step        aaaaaaaabbbbbbbb
    0 compute     ####....####....
    0 all_reduce  ..####....##....
    0 all_gather  ......##......##
"""


def test_each_collective_is_told_per_step_and_rank() -> None:
    gather, reduce = overlap(timeline(TWO_KINDS))
    assert (gather.name, gather.busy_ns, gather.hidden_ns, gather.exposed_ns) == ("all_gather", 20.0, 0.0, 20.0)
    assert (reduce.name, reduce.busy_ns, reduce.hidden_ns, reduce.exposed_ns) == ("all_reduce", 30.0, 20.0, 10.0)
    assert (reduce.count, reduce.steps, reduce.ranks) == (2, 2, (0,))


def test_the_largest_exposed_time_comes_first() -> None:
    assert [found.name for found in overlap(timeline(TWO_KINDS))] == ["all_gather", "all_reduce"]


def test_a_rank_that_has_none_of_it_counts_in_the_mean() -> None:
    (found,) = overlap(
        timeline("""
        0 step        aaaa
        0 all_reduce  ####
        1 step        aaaa
        1 compute     ####
    """)
    )
    assert (found.busy_ns, found.ranks) == (20.0, (0,))


def test_without_a_complete_step_it_is_over_whole_windows() -> None:
    (found,) = overlap(timeline("0 all_reduce ####"))
    assert (found.steps, found.busy_ns, found.count) == (0, 40.0, 1)


def test_waiting_and_sizes_are_none_where_untold() -> None:
    (found,) = overlap(timeline("0 all_reduce ####"))
    assert found.wait_ns is None
    assert found.size_bytes is None


def test_waiting_inside_a_collective_is_its_own() -> None:
    (found,) = overlap(
        timeline("""
        0 step        aaaaaaaa
        0 all_reduce  ######..
        0 wait        .###....
    """)
    )
    assert found.wait_ns == 30


def test_a_call_that_began_before_the_steps_counts_with_what_lies_in_them() -> None:
    of = timeline("""
        0 compute     ####....####....
        0 all_reduce  ..######..######
        0 step        ....aaaabbbb....
    """)
    (found,) = overlap(of)
    step = breakdown(of)[0].per_step
    assert step is not None
    # In the two steps: 40 ns of the first call, which began before them, and 20 of the second, which outlasts them.
    assert (found.count, found.busy_ns, found.hidden_ns, found.exposed_ns) == (2, 30, 10, 20)
    assert (found.busy_ns, found.exposed_ns) == (step.collective_ns, step.exposed_ns)


def where(picture: str) -> str:
    of: Run = timeline(picture)
    return exposed_in(overlap(of), exposure(of).exposed_ns)


def test_kinds_that_run_side_by_side_are_exposed_once() -> None:
    side_by_side = """
        0 step            aaaaaaaaaaaa
        0 compute         ####........
        0 all_gather      ....########
        0 reduce_scatter  ....########
    """
    found = exposure(timeline(side_by_side))
    assert (found.busy_ns, found.exposed_ns) == (80, 80)
    assert where(side_by_side) == "in collectives", "each is exposed for all of it"


def test_exposed_time_is_told_by_the_one_kind_that_has_most_of_it() -> None:
    one, short = "0 all_reduce      ##########..", "..####......"
    others = "\n".join(f"0 {name} {short}" for name in ("all_gather", "all_to_all", "reduce_scatter", "broadcast"))
    assert where(one) == "in all-reduce"
    # The others have four tenths each, beside it: added up they would outweigh it.
    assert where(f"{one}\n{others}") == "mostly in all-reduce"
    assert where("0 all_reduce ####....\n0 all_gather ....####") == "in collectives"


def test_sizes_are_bytes_per_step_and_rank() -> None:
    (window,) = windows("""
        0 step        aaaabbbb
        0 all_reduce  ##..##..
    """)
    sized = replace(window, spans=replace(window.spans, size_bytes=np.array([100, 300])))
    (found,) = overlap(run(windows=[sized]))
    assert found.size_bytes == 200


def test_collectives_are_summed_over_ranks_by_name_group_and_size() -> None:
    two = windows("""
        0 all_reduce  ####.##.
        1 all_reduce  ####....
        0 compute     ..##....
    """)
    sizes = {0: np.array([64, -1, 8]), 1: np.array([64])}
    drawn = [replace(w, spans=replace(w.spans, size_bytes=sizes[w.rank])) for w in two]
    large, small = collectives(run(windows=drawn))
    assert (large.size_bytes, large.count, large.ranks, large.busy_ns, large.hidden_ns) == (64, 2, (0, 1), 80, 20)
    assert (small.size_bytes, small.count, small.ranks, small.exposed_ns) == (8, 1, (0,), 20)


@pytest.mark.parametrize(("picture", "expected"), [
    ("0 all_reduce ####\n0 wait ##..", (20, 20)),
    ("0 all_reduce ####", (None, None)),
])  # fmt: skip
def test_transfer_is_what_is_left_of_a_collective_beside_its_waiting(
    picture: str, expected: tuple[int | None, int | None]
) -> None:
    (found,) = collectives(timeline(picture))
    assert (found.wait_ns, found.transfer_ns) == expected
