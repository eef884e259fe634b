"""Collectives by name, group and size: bandwidths as nccl-tests defines them, size classes, and what is charged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from meeting import MS, groups, met, run_of, window

from meshscope.analysis.bandwidth import algorithm_bytes_per_s, bus_factor
from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.collectives import MOST_SIZES, CollectiveTotal, collectives
from meshscope.analysis.overlap import overlap
from meshscope.reports.collectives_json import collectives_json
from meshscope.spans import Window

MIB = 2**20


@pytest.mark.parametrize(("name", "factor"), [
    ("all_reduce", 1.75), ("all_gather", 0.875), ("reduce_scatter", 0.875), ("all_to_all", 0.875),
    ("gather", 0.875), ("scatter", 0.875), ("broadcast", 1.0), ("reduce", 1.0), ("send", 1.0), ("send_recv", 1.0),
    ("barrier", None), ("unnamed", None),
])  # fmt: skip
def test_bus_bandwidth_is_as_nccl_tests_defines_it_for_eight_ranks(name: str, factor: float | None) -> None:
    assert bus_factor(name, 8) == factor


def test_no_bandwidth_without_peers_bytes_or_time() -> None:
    assert bus_factor("all_reduce", 1) is None
    assert algorithm_bytes_per_s(0, 5) is None
    assert algorithm_bytes_per_s(5, 0) is None
    assert algorithm_bytes_per_s(10, 5) == 2e9


def sized(size_bytes: Any, **about: Any) -> list[Window]:
    """Four ranks, four collectives of 1 ms each; rank 3 comes 9 ms late to the last."""
    arrival = np.tile(np.arange(4) * 100 * MS, (4, 1))
    arrival[3, 3] += 9 * MS
    return met(arrival, MS, spans={"size_bytes": size_bytes}, **about)


def test_bandwidth_is_over_the_transfer_without_the_waiting() -> None:
    (found,) = collectives(run_of(sized(MIB)))
    assert (found.count, found.matched, found.group_size, found.ranks) == (16, 16, 4, (0, 1, 2, 3))
    assert (found.wait_ns, found.transfer_ns, found.busy_ns) == (27 * MS, 16 * MS, 43 * MS)
    assert found.algbw_bytes_per_s == pytest.approx(MIB / 1e-3)
    assert found.busbw_bytes_per_s == pytest.approx(1.5 * MIB / 1e-3)
    assert (found.late_ns, found.last[3]) == ({3: 27 * MS}, 1)


def test_the_group_says_how_many_ranks_take_part() -> None:
    declared = groups([0, 1], [2, 3])
    windows = [
        replace(one, rank=rank, process_groups=declared,
                spans=replace(one.spans, group=np.full(4, rank // 2, np.int32), groups=("0", "1")))
        for rank, one in enumerate(sized(MIB))
    ]  # fmt: skip
    first, second = sorted(collectives(run_of(windows)), key=lambda found: found.group)
    assert (first.group_size, first.ranks, second.ranks) == (2, (0, 1), (2, 3))
    assert first.busbw_bytes_per_s == first.algbw_bytes_per_s  # 2 (n − 1) / n = 1
    assert (first.wait_ns, second.wait_ns) == (0, 9 * MS)


def test_sizes_that_are_not_told_give_no_bandwidth_and_the_reason() -> None:
    rows, doubts = collectives_json(run_of(sized(-1)))
    assert not {"size_bytes", "algbw_bytes_per_s", "busbw_bytes_per_s"} & set(rows[0])
    assert doubts == [("algbw_bytes_per_s", "sizes are not known (1 of 1 row)")]


def test_what_is_not_matched_gives_no_bandwidth_and_the_reason() -> None:
    rows, doubts = collectives_json(run_of(sized(MIB)[:1]))
    assert rows[0] == {
        "name": "all_reduce", "group": "", "size_bytes": MIB, "count": 4, "ranks": [0], "busy_ns": 13 * MS,
        "hidden_ns": 0, "exposed_ns": 13 * MS, "matched": 0,
    }  # fmt: skip
    assert [what for what, _ in doubts] == ["transfer_ns", "algbw_bytes_per_s"]


def test_late_ranks_are_told_by_name_in_json() -> None:
    rows, _ = collectives_json(run_of(sized(MIB)))
    assert rows[0]["late_ns"] == {"3": 27 * MS}
    assert rows[0]["last"]["3"] == 1


def many_sizes(count: int) -> tuple[CollectiveTotal, ...]:
    arrival = np.tile(np.arange(count) * 100 * MS, (2, 1))
    return collectives(run_of(met(arrival, MS, spans={"size_bytes": np.arange(1, count + 1) * 1000})))


def test_many_sizes_are_put_together_by_powers_of_two() -> None:
    assert len(many_sizes(MOST_SIZES)) == MOST_SIZES
    found = {total.size_class: total for total in many_sizes(MOST_SIZES + 1)}
    assert set(found) == {(2**power, 2 ** (power + 1)) for power in (9, 10, 11, 12, 13, 14, 15)}
    third = found[2048, 4096]
    assert (third.count, third.size_bytes, third.matched) == (4, 3500, 4)  # 3000 and 4000, on two ranks
    assert third.algbw_bytes_per_s == pytest.approx(3500 / 1e-3)


def test_concurrent_calls_of_one_kind_still_add_up() -> None:
    windows = [
        window(rank, [late * MS, (2 + late) * MS], [10 * MS, 12 * MS], spans={"sequence": [1, 2]}, world=2)
        for rank, late in enumerate((0, 5))
    ]
    (found,) = collectives(run_of(windows))
    assert (found.busy_ns, found.transfer_ns) == (12 * MS + 7 * MS, 7 * MS + 7 * MS)
    assert found.wait_ns == 5 * MS


def test_the_breakdown_and_the_overlap_of_a_matched_run_have_its_waiting() -> None:
    here = run_of(sized(MIB, steps=[0, 0, 1, 1]))
    ranks = breakdown(here)
    assert [rank.total.wait_ns for rank in ranks] == [9 * MS] * 3 + [0]
    assert [rank.per_step.wait_ns for rank in ranks if rank.per_step] == [round(4.5 * MS)] * 3 + [0]
    (found,) = overlap(here)
    assert found.wait_ns == pytest.approx(27 * MS / 8)


def test_the_waiting_of_jax_ranks_that_record_none_is_known_by_rank_where_it_is_by_collective() -> None:
    untold = (("wait_ns", "untold"),)
    here = run_of([replace(one, framework="jax", cannot_say=untold) for one in sized(MIB, steps=[0, 0, 1, 1])])
    assert [rank.total.wait_ns for rank in breakdown(here)] == [9 * MS] * 3 + [0]
    assert overlap(here)[0].wait_ns == pytest.approx(27 * MS / 8)
    alone = run_of([replace(sized(MIB)[0], framework="jax", cannot_say=untold, world=2)])
    assert breakdown(alone)[0].total.wait_ns is None
    assert overlap(alone)[0].wait_ns is None


def test_the_breakdown_of_a_window_with_unmatched_collectives_has_no_waiting() -> None:
    names = ["all_reduce", "broadcast", "all_reduce", "all_reduce"]
    known = [replace(one, cannot_say=(("wait_ns", "untold"),)) for one in sized(MIB, names=names, steps=[0, 0, 1, 1])]
    assert [rank.total.wait_ns for rank in breakdown(run_of(known))] == [None] * 4
    assert {found.name: found.wait_ns is None for found in overlap(run_of(known))} == {
        "all_reduce": False,
        "broadcast": True,
    }


def side_by_side(second_ns: int, *, kind: str = "all_gather", late_ns: int = 0) -> tuple[CollectiveTotal, ...]:
    """Two ranks: an all-reduce of 1 MiB from 0 to 10 ms, and another collective from ``second_ns`` to then and 10 ms;
    rank 1 comes ``late_ns`` later to that."""
    windows = [
        window(
            rank, [0, second_ns + late_ns * rank], [10 * MS, second_ns + 10 * MS], names=["all_reduce", kind],
            spans={"size_bytes": [MIB, 2 * MIB]}, world=2,
        )
        for rank in range(2)
    ]  # fmt: skip
    return collectives(run_of(windows))


def test_collectives_side_by_side_are_said_to_share_their_links() -> None:
    found = {one.name: one for one in side_by_side(6 * MS)}
    # 4 of 10 ms on either rank.
    assert (found["all_reduce"].beside_ns, found["all_gather"].beside_ns) == (8 * MS, 8 * MS)
    assert found["all_reduce"].transfer_ns == 20 * MS
    assert found["all_reduce"].algbw_bytes_per_s == pytest.approx(MIB / 10e-3)
    assert [one.beside_ns for one in side_by_side(10 * MS)] == [0, 0]


def test_who_only_waits_shares_no_link() -> None:
    """Rank 1 comes to the second 4 ms after rank 0, when the first is over: until then nothing of it is moved."""
    assert [one.beside_ns for one in side_by_side(6 * MS, late_ns=4 * MS)] == [0, 0]


def test_calls_of_one_row_side_by_side_have_the_bandwidth_of_both_together() -> None:
    """Two all-reduces of 1 MiB at once for 10 ms: the links carry both, and the time counts once."""
    windows = [
        window(rank, [0, 0], [10 * MS, 10 * MS], spans={"size_bytes": [MIB, MIB], "sequence": [1, 2]}, world=2)
        for rank in range(2)
    ]
    (found,) = collectives(run_of(windows))
    assert found.algbw_bytes_per_s == pytest.approx(2 * MIB / 10e-3)
    assert found.beside_ns == 0


def test_an_all_to_all_in_which_ranks_move_different_amounts_has_no_bus_bandwidth() -> None:
    def exchanged(*sizes: int) -> Any:
        arrival = np.tile(np.arange(2) * 100 * MS, (len(sizes), 1))
        windows = met(arrival, MS, names="all_to_all")
        return run_of(
            [
                replace(one, spans=replace(one.spans, size_bytes=np.full(2, size)))
                for one, size in zip(windows, sizes, strict=True)
            ]
        )

    (even,) = collectives(exchanged(MIB, MIB, MIB, MIB))
    assert (even.is_uneven, even.busbw_bytes_per_s) == (False, pytest.approx(0.75 * MIB / 1e-3))
    rows, doubts = collectives_json(exchanged(MIB, MIB, MIB, 3 * MIB))
    assert {(row["size_bytes"], row["is_uneven"], "busbw_bytes_per_s" in row) for row in rows} == {
        (MIB, True, False),
        (3 * MIB, True, False),
    }
    assert doubts == [("busbw_bytes_per_s", "ranks move different amounts in one call (2 of 2 rows)")]
