"""What many small collectives cost: calls one after the other, side by side, hidden, and waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from asked import codes, only, said
from made_spans import Made, collective, kernel, window
from meeting import MS, run_of

from meshscope.run import Run

STEP_NS = 100 * MS


def two_ranks(calls: Sequence[Made], late: Sequence[Made] | None = None, *, steps: int = 1) -> Run:
    """Ranks 0 and 1 of a run; the second has its own spans where they are given."""
    bounds = [(at * STEP_NS, (at + 1) * STEP_NS) for at in range(steps)]
    about = {"steps": bounds, "world": 2, "host": "one"}
    return run_of([window(calls, rank=0, **about), window(late or calls, rank=1, **about)], strategy="ddp", ranks=2)


def call(start_ns: int, number: int, *, dur_ns: int = MS, lane: str = "stream 20") -> Made:
    """Every other one moves five times as much, in the same time: all of it is latency."""
    return collective(start_ns, start_ns + dur_ns, size_bytes=100_000 if number % 2 else 20_000, lane=lane)


def serial(count: int = 40) -> list[Made]:
    return [call(at * MS, at) for at in range(count)]


def pairs(count: int = 40) -> list[Made]:
    """A small one and a large one at once, on two streams."""
    return [call(at // 2 * MS, at, lane=f"stream {20 + at % 2}") for at in range(count)]


def test_calls_one_after_the_other_cost_the_latency_of_all_but_one() -> None:
    found = only("small-collectives", two_ranks(serial()))
    assert (found.cost_ns, found.cost_frac) == (pytest.approx(39 * MS), pytest.approx(0.39))
    assert "40 all-reduce calls a step move 2.40 MB" in said(found)
    assert "fitted to them, a call takes 1.00 ms" in said(found)
    assert "39 fewer, 100.0 % of whose time is exposed" in said(found)


def test_calls_in_pairs_cost_the_time_on_the_wall_once() -> None:
    """Forty calls of 1 ms, two at a time, run for 20 ms; one that carries all would take half a millisecond."""
    found = only("small-collectives", two_ranks(pairs()))
    assert found.cost_ns == pytest.approx(19.5 * MS)
    assert "a call takes 500 µs" in said(found)


def test_pairs_of_equal_size_cost_the_same() -> None:
    alike = [call(at // 2 * MS, at // 2, lane=f"stream {20 + at % 2}") for at in range(40)]
    assert only("small-collectives", two_ranks(alike)).cost_ns == pytest.approx(19.5 * MS)


@pytest.mark.parametrize("name", ["all_to_all", "send"])
def test_exchanges_cannot_be_put_together(name: str) -> None:
    """What goes to a layer's experts, or to a pipeline's next stage, is computed from what came back from the last."""
    assert "small-collectives" not in codes(two_ranks(of_kind(name)))
    assert "small-collectives" in codes(two_ranks(of_kind("all_gather")))


def of_kind(name: str) -> list[Made]:
    return [replace(one, name=f"nccl:{name}", collective=name) for one in serial()]


def test_calls_under_compute_cost_nothing() -> None:
    assert "small-collectives" not in codes(two_ranks([*serial(), kernel(0, 40 * MS)]))
    assert "small-collectives" not in codes(two_ranks([*pairs(), kernel(0, 20 * MS)]))


def test_calls_half_under_compute_cost_half() -> None:
    found = only("small-collectives", two_ranks([*serial(), kernel(0, 20 * MS)]))
    assert found.cost_ns == pytest.approx(39 * MS / 2)
    # Ten of the twenty milliseconds in which pairs run.
    beside = only("small-collectives", two_ranks([*pairs(), kernel(0, 10 * MS)]))
    assert beside.cost_ns == pytest.approx(19.5 * MS / 2)


def test_waiting_for_a_late_rank_is_no_latency() -> None:
    """Of each call's millisecond rank 0 waits 0.9 for rank 1: forty calls of 0.1 ms are left."""
    late = [call(at * MS + 9 * MS // 10, at, dur_ns=MS // 10) for at in range(40)]
    found = only("small-collectives", two_ranks(serial(), late))
    assert found.cost_ns == pytest.approx(3.9 * MS)


def test_what_lies_beside_complete_steps_is_not_counted() -> None:
    outside = [call(STEP_NS + at * MS, at) for at in range(40)]
    found = only("small-collectives", two_ranks([*serial(), *outside]))
    assert found.cost_ns == pytest.approx(39 * MS)
    assert "40 all-reduce calls a step" in said(found)


def test_no_more_than_the_exposed_time_can_be_saved() -> None:
    """Whatever runs beside whatever: the cost is at most the time in which calls run and nothing computes."""
    tangled = [call(at * MS // 3, at, dur_ns=MS * (1 + at % 3), lane=f"stream {20 + at % 4}") for at in range(60)]
    union_ns = max(one.end_ns for one in tangled)  # from 0 on without a gap
    assert 10 * MS < only("small-collectives", two_ranks(tangled)).cost_ns < union_ns
