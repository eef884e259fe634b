"""Waiting against transfer: worked cases, then what must not change the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn import timeline
from hypothesis import given
from hypothesis import strategies as st
from meeting import MS, groups, later, met, run_of, window, without_first

from meshscope.analysis.collectives import collectives
from meshscope.analysis.doubts import doubts
from meshscope.analysis.matching import WORLD_UNTOLD
from meshscope.analysis.waiting import Waiting, waiting
from meshscope.run import Run, open_traces
from meshscope.spans import Window

LATE = 1
"""The rank that is 100 ms late in the worked cases."""

APART_NS = 11_560 * MS


def late_once() -> list[Window]:
    """Four ranks, five all-reduces of 1 ms at uneven times; rank 1 comes 100 ms late to the third."""
    arrival = np.tile(np.array([0, 50, 230, 480, 530]) * MS, (4, 1))
    arrival[LATE, 2] += 100 * MS
    return met(arrival, MS, host="node")


def check_late_once(found: Waiting, matched: int = 5) -> None:
    by_rank = {rank.rank: rank for rank in found.ranks}
    assert [rank.transfer_ns for rank in found.ranks] == [matched * MS] * 4
    assert {rank: by_rank[rank].wait_ns for rank in by_rank} == {0: 100 * MS, LATE: 0, 2: 100 * MS, 3: 100 * MS}
    assert by_rank[LATE].charged_ns == 300 * MS
    assert all(by_rank[rank].charged_ns == 0 for rank in (0, 2, 3))
    assert found.residual_ns is not None
    assert found.residual_ns < MS


def test_a_rank_100_ms_late_at_a_1_ms_all_reduce_makes_the_others_wait_100_ms() -> None:
    found = waiting(run_of(late_once()))
    check_late_once(found)
    assert (found.collectives, found.matched, found.spans, found.unmatched) == (5, 20, 20, ())
    third = found.windows[next(one for one in found.windows if one.rank == 0)]
    assert third.wait_ns.tolist() == [0, 0, 100 * MS, 0, 0]
    assert third.last_rank[2] == LATE


@pytest.mark.parametrize("rank", [0, LATE, 3])
def test_a_window_that_begins_one_collective_later_gives_the_same_answer(rank: int) -> None:
    windows = late_once()
    windows[rank] = without_first(windows[rank], 1)
    found = waiting(run_of(windows))
    check_late_once(found, matched=4)
    assert found.unmatched == (("the window of another rank does not hold them", 3),)


@pytest.mark.parametrize("rank", [0, LATE, 3])
def test_clocks_11_56_s_apart_give_the_same_answer(rank: int) -> None:
    windows = [replace(one, host=f"node {one.rank}") for one in late_once()]
    windows[rank] = later(windows[rank], APART_NS)
    found = waiting(run_of(windows))
    check_late_once(found)
    offsets = {key: clock.offset_ns for key, clock in found.clocks.items()}
    assert offsets == {key: APART_NS if key == rank else 0 for key in range(4)}


@pytest.mark.parametrize("host", ["", "node"], ids=["untold", "one name for two machines"])
@pytest.mark.parametrize("rank", [0, LATE, 3])
def test_clocks_apart_and_a_window_that_begins_later_give_the_same_answer(rank: int, host: str) -> None:
    windows = [replace(one, host=host) for one in late_once()]
    windows[rank] = later(without_first(windows[rank], 1), APART_NS)
    check_late_once(waiting(run_of(windows)), matched=4)


def test_evenly_spaced_collectives_by_clocks_apart_are_no_match_unless_the_steps_tell() -> None:
    arrival = np.tile(np.arange(8) * 100 * MS, (2, 1))
    arrival[1] += 10 * MS
    windows = met(arrival, MS)
    windows[1] = later(windows[1], APART_NS)
    found = waiting(run_of(windows))
    assert (found.matched, found.unmatched[0][0]) == (
        0,
        "ranks have clocks of their own, and several shifts fit equally well",
    )
    stepped = met(arrival, MS, steps=list(range(8)))
    stepped[1] = later(without_first(stepped[1], 1), APART_NS)
    assert [rank.wait_ns for rank in waiting(run_of(stepped)).ranks] == [70 * MS, 0]


def test_two_collectives_by_clocks_apart_are_too_few_to_tell() -> None:
    windows = met(np.array([[0, 70], [0, 70]]) * MS, MS)
    windows[1] = later(windows[1], APART_NS)
    assert "fewer than 3" in waiting(run_of(windows)).unmatched[0][0]


def test_sequence_numbers_match_whatever_the_windows_hold() -> None:
    arrival = np.tile(np.arange(6) * 100 * MS, (2, 1))
    arrival[0, 3] += 40 * MS
    numbers = {"sequence": np.arange(7, 13), "group": 0, "groups": ("g",)}
    windows = met(arrival, MS, spans=numbers)
    keep = np.array([0, 2, 3, 5])
    windows[1] = replace(windows[1], spans=windows[1].spans.where(keep)).shifted(APART_NS)
    found = waiting(run_of(windows))
    assert [(rank.calls, rank.wait_ns, rank.last) for rank in found.ranks] == [(4, 0, 1), (4, 40 * MS, 0)]


def test_calls_that_share_a_sequence_number_are_told_apart_by_their_order() -> None:
    numbers = {"sequence": [4, 4, 4, 5], "group": 0, "groups": ("g",)}
    windows = met(np.array([[0, 10, 20, 30], [0, 15, 20, 30]]) * MS, MS, spans=numbers)
    assert [rank.wait_ns for rank in waiting(run_of(windows)).ranks] == [5 * MS, 0]


def test_a_lone_rank_cannot_say_who_came_late() -> None:
    (one, *_) = late_once()
    found = waiting(run_of([one]))
    assert (found.matched, found.ranks) == (0, ())
    assert found.unmatched == (
        ("only rank 0 alone of the 4 ranks of the run can be seen, and another may have come last", 5),
    )
    (total,) = collectives(run_of([one]))
    assert (total.wait_ns, total.transfer_ns, total.algbw_bytes_per_s) == (None, None, None)


def test_with_a_rank_missing_another_may_have_come_last() -> None:
    found = waiting(run_of(late_once()[:3]))
    assert found.unmatched[0][0].startswith("only ranks 0–2 of the 4 ranks of the run can be seen")


def test_where_the_number_of_ranks_is_untold_the_assumption_is_said() -> None:
    found = waiting(run_of([replace(one, world=0) for one in late_once()]))
    check_late_once(found)
    assert found.notes == (WORLD_UNTOLD,)
    gap = [replace(one, world=0) for one in late_once() if one.rank != 2]
    assert waiting(run_of(gap)).matched == 0


def test_different_collectives_in_the_same_place_are_no_match() -> None:
    arrival = np.array([[0, 10, 20, 30]] * 2) * MS
    windows = met(arrival, MS, process_groups=groups([0, 1]))
    other = met(
        arrival, MS, process_groups=groups([0, 1]), names=["all_gather", "all_reduce", "all_gather", "all_gather"]
    )
    found = waiting(run_of([windows[0], other[1]]))
    assert (found.matched, found.unmatched) == (0, (("their names or sizes differ between ranks at every shift", 8),))


def test_sizes_that_differ_between_ranks_are_no_match() -> None:
    arrival = np.array([[0, 10, 20, 30]] * 2) * MS
    sizes = [{"size_bytes": [8, 8, 8, 8]}, {"size_bytes": [8, 8, 16, 8]}]
    windows = [met(arrival, MS, spans=one)[rank] for rank, one in enumerate(sizes)]
    assert waiting(run_of(windows)).unmatched == (("their names or sizes differ between ranks at every shift", 8),)


def test_spans_that_do_not_meet_are_no_match() -> None:
    """Two groups of two ranks, told apart by nothing, each at its own pace."""
    one, two = (met(np.array([start, start]) * MS, MS, world=4) for start in ([0, 10, 20, 30], [3, 17, 26, 31]))
    moved = [replace(made, rank=rank + 2) for rank, made in enumerate(two)]
    found = waiting(run_of([*one, *moved]))
    assert found.matched == 0


def test_what_a_broadcast_waits_for_is_not_said() -> None:
    windows = met(np.array([[0, 10, 20], [0, 10, 20]]) * MS, MS, names=["all_reduce", "broadcast", "all_reduce"])
    found = waiting(run_of(windows))
    assert (found.matched, found.spans) == (4, 6)
    assert found.unmatched[0][0].startswith("a broadcast, reduce, gather, scatter or permute does not hold back")


def test_concurrent_collectives_of_different_groups_are_matched_each_in_its_own() -> None:
    """Ranks 0–3 as two rows and two columns: every rank is in two groups whose collectives overlap in time."""
    declared = groups([0, 1], [2, 3], [0, 2], [1, 3])
    of_rank = {0: (0, 2), 1: (0, 3), 2: (1, 2), 3: (1, 3)}
    late = {0: 0, 1: 5, 2: 0, 3: 0}
    windows = []
    for rank, (row, column) in of_rank.items():
        row_end = max(late[other] for other in declared[row].ranks) + 4
        column_end = 2 + max(late[other] for other in declared[column].ranks) + 6
        windows.append(
            window(
                rank,
                [late[rank] * MS, (late[rank] + 2) * MS],
                [row_end * MS, column_end * MS],
                spans={"group": [row, column], "groups": ("0", "1", "2", "3")},
                world=4,
                process_groups=declared,
                host="node",
            )
        )
    found = waiting(run_of(windows))
    assert (found.matched, found.collectives) == (8, 4)
    assert {rank.rank: rank.wait_ns // MS for rank in found.ranks} == {0: 5, 1: 0, 2: 0, 3: 5}
    assert {rank.rank: rank.charged_ns // MS for rank in found.ranks} == {0: 0, 1: 10, 2: 0, 3: 0}


def test_a_drifting_clock_is_followed() -> None:
    rng = np.random.default_rng(3)
    arrival = np.cumsum(rng.integers(50, 200, size=(1, 300)) * MS, axis=1) + rng.integers(0, 3 * MS, size=(2, 300))
    still = waiting(run_of(met(arrival, MS)))
    windows = [replace(one, host=f"node {one.rank}") for one in met(arrival, MS)]
    gained = lambda time_ns: time_ns + (time_ns * 20e-6).astype(np.int64)  # noqa: E731  # 20 µs per second
    spans = windows[1].spans
    windows[1] = replace(
        windows[1], spans=replace(spans, start_ns=gained(spans.start_ns), end_ns=gained(spans.end_ns))
    ).shifted(APART_NS)
    found = waiting(run_of(windows))
    assert found.residual_ns is not None
    assert found.residual_ns < 5_000
    assert found.clocks[1].drift_ns_per_s == pytest.approx(20_000, rel=0.01)
    for straight, bent in zip(still.ranks, found.ranks, strict=True):
        assert bent.wait_ns == pytest.approx(straight.wait_ns, abs=300 * 5_000)


def test_an_offset_within_the_scatter_of_the_ends_is_no_offset() -> None:
    rng = np.random.default_rng(5)
    arrival = np.cumsum(rng.integers(5, 20, size=(1, 60)) * MS, axis=1) + rng.integers(0, MS, size=(3, 60))
    windows = met(arrival, MS)
    jitter = [
        replace(one, spans=replace(one.spans, end_ns=one.spans.end_ns + rng.integers(-20_000, 20_000, 60)))
        for one in windows
    ]
    found = waiting(run_of([*jitter[:2], later(jitter[2], 4_000)]))
    assert {clock.offset_ns for clock in found.clocks.values()} == {0}


def test_windows_of_one_round_are_matched_with_each_other_only() -> None:
    first = met(np.array([[0, 10], [3, 10]]) * MS, MS, steps=[4, 4])
    second = met(np.array([[500, 510], [500, 517]]) * MS, MS, steps=[9, 9])
    found = waiting(run_of([*second, *first]))
    assert [(rank.calls, rank.wait_ns // MS) for rank in found.ranks] == [(4, 10), (4, 0)]


def test_a_window_whose_peers_have_not_come_yet_waits_for_them() -> None:
    first = met(np.array([[0, 10], [3, 10]]) * MS, MS, steps=[4, 4])
    second = met(np.array([[500, 510], [500, 517]]) * MS, MS, steps=[9, 9])
    found = waiting(run_of([*first, second[0]]))
    assert (found.matched, found.spans) == (4, 6)


def test_ranks_of_which_nobody_knows_who_meets_whom_are_not_matched() -> None:
    """Four devices of a program that reduces among pairs, in a file that does not say which of the eight they are."""
    arrivals = [[0, 100 * MS], [2 * MS, 103 * MS], [0, 101 * MS], [1 * MS, 100 * MS]]

    def grouped(name: str) -> Run:
        group = {"groups": (name,), "group": np.zeros(2, dtype=np.int32)}
        windows = [replace(one, framework="jax") for one in met(arrivals, 10 * MS)]
        return run_of([replace(one, spans=replace(one.spans, **group)) for one in windows])

    pairs = waiting(grouped("one of 4 groups of 2 devices"))
    assert pairs.unmatched == (("which of 4 ranks are in one group of 2 cannot be told", 8),)
    # Four ranks may be two of either group of four.
    fours = waiting(grouped("one of 2 groups of 4 devices"))
    assert (fours.matched, pairs.matched) == (0, 0)
    assert waiting(grouped("devices 0, 1, 2, 3")).matched == 8
    (total,) = collectives(grouped("one of 4 groups of 2 devices"))
    assert (total.group_size, total.wait_ns, total.busbw_bytes_per_s) == (2, None, None)


def test_what_xla_records_of_waiting_stands_and_lateness_is_told_beside_it() -> None:
    drawn = timeline(
        """
        0 all_reduce  .#####..
        0 wait        .##.....
        1 all_reduce  ...###..
        1 wait        ........
        2 all_reduce  .#####..
        2 wait        .#......
    """,
        framework="jax",
        device_kind="cpu",
        world=3,
    )
    (total,) = collectives(drawn)
    assert total.last == {1: 1}
    assert waiting(drawn).ranks[0].wait_ns == 20


def test_doubts_of_single_windows_give_way_to_what_the_ranks_say_together() -> None:
    alone = (("wait_ns", "needs all ranks"), ("size_bytes", "no sizes"))
    together = [replace(one, cannot_say=alone) for one in late_once()]
    assert doubts(run_of(together)) == (("size_bytes", "no sizes"),)
    said = doubts(run_of(together[:1]))
    assert [what for what, _ in said] == ["size_bytes", "wait_ns"]
    assert said[1][1].startswith("5 of 5 collective spans: only rank 0 alone of the 4 ranks")


arrivals = st.integers(2, 5).flatmap(
    lambda ranks: st.lists(
        st.tuples(st.integers(2, 400), st.lists(st.integers(0, 90), min_size=ranks, max_size=ranks)),
        min_size=4,
        max_size=24,
    )
)


def made(drawn: Any, **about: Any) -> list[Window]:
    """Collectives at uneven times, 100 ms or more apart, each rank late by some whole milliseconds."""
    gaps = np.array([100 + gap + 7 * (number % 5) for number, (gap, _) in enumerate(drawn)])
    late = np.array([late for _, late in drawn]).T
    return met((np.cumsum(gaps) + late) * MS, 3 * MS, **about)


def by_rank(found: Waiting) -> dict[int, tuple[int, int, int]]:
    return {rank.rank: (rank.wait_ns, rank.transfer_ns, rank.charged_ns) for rank in found.ranks}


@given(arrivals)
def test_waiting_and_transfer_add_up_to_the_time_of_each_rank_and_collective(drawn: Any) -> None:
    here = run_of(made(drawn, host="node"))
    found = waiting(here)
    for rank in found.ranks:
        assert rank.wait_ns + rank.transfer_ns == rank.busy_ns
        assert rank.transfer_ns == 3 * MS * len(drawn)
    assert sum(rank.wait_ns for rank in found.ranks) == sum(rank.charged_ns for rank in found.ranks)
    (total,) = collectives(here)
    assert total.wait_ns is not None
    assert total.transfer_ns is not None
    assert total.wait_ns + total.transfer_ns == total.busy_ns
    assert sum(total.late_ns.values()) == total.wait_ns


@given(arrivals, st.randoms(use_true_random=False))
def test_the_order_of_ranks_and_files_changes_nothing(drawn: Any, random: Any) -> None:
    windows = made(drawn, host="node")
    expected = {rank: (wait, transfer) for rank, (wait, transfer, _) in by_rank(waiting(run_of(windows))).items()}
    to = list(range(len(windows)))
    random.shuffle(to)
    renamed = [replace(one, rank=to[one.rank]) for one in windows]
    random.shuffle(renamed)
    found = by_rank(waiting(run_of(renamed)))
    assert {rank: found[to[rank]][:2] for rank in range(len(windows))} == expected


@given(arrivals, st.data())
def test_clocks_that_are_apart_and_a_prefix_that_is_cut_leave_the_transfer_as_it_is(drawn: Any, data: Any) -> None:
    windows = made(drawn)
    rank = data.draw(st.integers(0, len(windows) - 1))
    cut = data.draw(st.integers(0, min(2, len(drawn) // 2 - 1)))
    changed = list(windows)
    changed[rank] = without_first(windows[rank], cut)
    away = [later(one, data.draw(st.integers(-20, 20)) * 1_000 * MS) for one in changed]
    found = waiting(run_of(away))
    if found.matched:  # evenly spaced ends fit at several shifts, and are left alone
        expected = waiting(run_of([without_first(one, cut) for one in windows]))
        assert by_rank(found) == by_rank(expected)
    else:
        assert "several shifts" in found.unmatched[0][0] or "fewer than" in found.unmatched[0][0]


def test_a_collective_to_which_all_come_together_is_nobodys() -> None:
    windows = met(np.tile(np.arange(10) * 300 * MS, (4, 1)), MS, host="node")
    assert [(rank.last, rank.charged_ns) for rank in waiting(run_of(windows)).ranks] == [(0, 0)] * 4
    (row,) = collectives(run_of(windows))
    assert (row.last, row.late_ns) == ({}, {})


def test_who_comes_later_by_less_than_the_ends_lie_apart_is_not_last() -> None:
    """Ends of one collective are one moment: where they are 40 µs apart, 30 µs between beginnings say nothing."""
    start_ns = np.tile(np.arange(4) * 300 * MS, (2, 1))
    start_ns[1] += np.array([30_000, 30_000, 60_000, 0])
    end_ns = np.stack((start_ns[0] + MS, start_ns[0] + MS + 40_000))
    windows = [window(rank, start_ns[rank].tolist(), end_ns[rank].tolist(), world=2, host="node") for rank in (0, 1)]
    found = waiting(run_of(windows))
    assert [(rank.last, rank.charged_ns) for rank in found.ranks] == [(0, 0), (1, 60_000)]
    # What rank 0 waits is waiting all the same: nobody is to blame for the rest of it.
    assert found.ranks[0].wait_ns == 30_000 + 30_000 + 60_000


def test_of_ranks_that_come_last_in_the_same_nanosecond_the_first_is_named() -> None:
    arrival = np.tile(np.arange(4) * 300 * MS, (3, 1))
    arrival[1:] += 100 * MS
    found = waiting(run_of(met(arrival, MS, host="node")))
    assert [(rank.last, rank.charged_ns) for rank in found.ranks] == [(0, 0), (4, 400 * MS), (0, 0)]


@pytest.mark.shared
def test_all_collectives_of_a_tensor_parallel_run_are_matched(shared: Path) -> None:
    (here,) = open_traces([shared / "traces" / "mr-megatron-tp8-a100"]).runs
    found = waiting(here)
    assert (found.collectives, found.matched, len(found.ranks), found.unmatched) == (84, 672, 8, ())
    last = {rank.rank: rank.last for rank in found.ranks}
    assert (last[0], last[6], sum(last.values())) == (32, 28, 83), "to one of 84 all came in the same microsecond"
    assert found.residual_ns is not None
    assert found.residual_ns <= 50_000
    assert {clock.offset_ns for clock in found.clocks.values()} == {0}
    large = collectives(here)[0]
    assert (large.size_bytes, large.group_size) == (4 * 2048 * 4096 * 2, 8)
    assert large.busbw_bytes_per_s == pytest.approx(190e9, rel=0.02)


@pytest.mark.shared
def test_the_straggler_of_an_all_to_all_run_is_found(shared: Path) -> None:
    (here,) = open_traces([shared / "traces" / "mr-torchrec-sst4-a2a"]).runs
    found = waiting(here)
    assert {rank.rank: rank.last for rank in found.ranks} == {0: 0, 1: 0, 2: 12, 3: 0}
    assert found.unmatched == (("the window of another rank does not hold them", 3),)


@pytest.mark.shared
def test_two_ranks_of_128_say_nothing_of_waiting(shared: Path) -> None:
    (here,) = open_traces([shared / "traces" / "mr-hta-sampled2"]).runs
    found = waiting(here)
    assert found.matched == 0
    assert "of the 128 ranks" in found.unmatched[0][0]
