"""Sends and receives: who waits for whom, how long the transfer takes, and when nothing can be said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from made_spans import Made
from meeting import met, run_of
from staged import MS, OPTIONS, ops, receives, sends, stage, staged

from meshscope.analysis.collectives import CollectiveTotal, collectives
from meshscope.analysis.critical_path import critical_paths
from meshscope.analysis.lateness import lateness
from meshscope.analysis.passing import ALONE, CONTRADICTION, NO_PEER, OTHER_CLOCK, UNEQUAL
from meshscope.analysis.stragglers import stragglers
from meshscope.analysis.waiting import Waiting, waiting
from meshscope.run import Run


def two(sender: Sequence[Made], receiver: Sequence[Made], **about: object) -> Run:
    return staged(stage(0, list(sender)), stage(1, list(receiver), **about))


def waits_ms(found: Waiting) -> list[tuple[float, float]]:
    return [(one.wait_ns / MS, one.transfer_ns / MS) for one in found.ranks]


def test_a_receiver_waits_until_its_sender_sends() -> None:
    # The sender looks at 9 whether it is done; the receiver had all of it at 6.
    found = waiting(two([ops(0, 5), sends(5, 9)], [receives(1, 6), ops(6, 9)]))
    assert waits_ms(found) == [(0, 1), (4, 1)]
    assert [(one.last, one.charged_ns / MS) for one in found.ranks] == [(1, 4), (0, 0)]
    assert (found.collectives, found.matched, found.spans, found.unmatched) == (1, 2, 2, ())


def test_a_sender_waits_until_its_receiver_asks() -> None:
    found = waiting(two([sends(0, 8)], [ops(0, 6), receives(6, 7)]))
    assert waits_ms(found) == [(6, 1), (0, 1)]
    assert [one.charged_ns / MS for one in found.ranks] == [0, 6]


def test_a_rank_comes_with_its_call_though_the_span_begins_when_that_has_ended() -> None:
    """Under load the sender's thread may be off its core between the two, and all is received meanwhile."""
    found = waiting(two([ops(0, 3), sends(6, 9, before_ns=3 * MS)], [receives(1, 5)]))
    assert found.unmatched == ()
    assert waits_ms(found) == [(0, 0), (2, 2)]


def test_the_order_of_a_line_makes_nobody_late() -> None:
    run = two([ops(0, 5), sends(5, 9)], [receives(1, 6), ops(6, 9)])
    assert lateness(run).late_ns.tolist() == [[0], [0]]


def test_each_direction_of_a_pair_is_a_group_of_its_own() -> None:
    run = two([sends(0, 2), receives(2, 6, "ranks 1 to 0")], [receives(0, 2), ops(2, 5), sends(5, 6, "ranks 1 to 0")])
    rows: dict[tuple[str, str], CollectiveTotal] = {(one.name, one.group): one for one in collectives(run)}
    assert rows.keys() == {
        ("send", "ranks 0 to 1"), ("recv", "ranks 0 to 1"), ("send", "ranks 1 to 0"), ("recv", "ranks 1 to 0"),
    }  # fmt: skip
    back = rows["recv", "ranks 1 to 0"]
    assert (back.ranks, back.group_size, back.count, back.size_bytes) == ((0,), 2, 1, 4096)
    assert (back.wait_ns, back.transfer_ns, back.late_ns) == (3 * MS, MS, {1: 3 * MS})
    assert back.algbw_bytes_per_s == back.busbw_bytes_per_s == pytest.approx(4096 / 1e-3)


@pytest.mark.parametrize(
    ("sender", "receiver", "about", "why"),
    [
        ([sends(0, 2, "")], [receives(0, 2, "")], {}, NO_PEER),
        ([sends(0, 2)], [ops(0, 2)], {}, ALONE),
        ([sends(0, 2)], [receives(0, 2)], {"host": "elsewhere"}, OTHER_CLOCK),
        ([sends(0, 1), sends(1, 2)], [receives(0, 2)], {}, UNEQUAL),
        ([sends(0, 2)], [receives(0, 2, size_bytes=8)], {}, UNEQUAL),
        ([sends(5, 6)], [receives(0, 2)], {}, CONTRADICTION),
    ],
)
def test_what_cannot_be_matched_says_why(
    sender: list[Made], receiver: list[Made], about: dict[str, object], why: str
) -> None:
    found = waiting(two(sender, receiver, **about))
    assert found.matched == 0
    assert [reason for reason, _ in found.unmatched] == [why]


def test_a_step_that_one_rank_shows_in_part_leaves_the_other_steps_matched() -> None:
    steps = {"steps": [(0, 10 * MS), (10 * MS, 20 * MS)]}
    sender = stage(0, [sends(0, 1), sends(11, 12), sends(12, 13)], **steps)
    receiver = stage(1, [receives(0, 1), receives(11, 12)], **steps)
    found = waiting(staged(sender, receiver))
    assert found.matched == 2
    assert dict(found.unmatched) == {UNEQUAL: 3}


def test_the_path_goes_from_a_receiver_to_the_rank_that_sends() -> None:
    """Rank 0 computes 4 ms and sends; rank 1 computes 7 ms on it and sends back; rank 0 computes the last 5 ms."""
    there = stage(0, [ops(0, 4), sends(4, 5, before_ns=1), receives(5, 13, "ranks 1 to 0", before_ns=1), ops(13, 18)])
    back = stage(1, [receives(0, 5), ops(5, 12), sends(12, 13, "ranks 1 to 0", before_ns=1)], steps=[(0, 13 * MS)])
    (found,) = critical_paths(staged(there, back))
    # A transfer is its receiver's. A send begins 1 ns after its call.
    assert found.by_rank == {0: 10 * MS, 1: 8 * MS}
    assert found.parts == {"compute": 16 * MS - 2, "launch": 2, "communication": 2 * MS}
    assert "no_straggler" not in {one.name for one in found.what_ifs}


def test_a_stage_that_comes_last_to_every_all_reduce_is_no_straggler() -> None:
    """The first stage takes the last backward pass, and the last waits for it to add up the embedding's gradient."""
    arrival = np.tile(np.arange(1, 21) * 100 * MS, (2, 1))
    arrival[0] += 20 * MS
    windows = met(arrival, MS, steps=list(range(20)), host="node")
    assert [one.rank for one in stragglers(run_of(windows, strategy="mine"))] == [0]
    assert stragglers(run_of(windows, strategy="pp-1f1b", options=OPTIONS)) == ()
