"""Where time goes, from drawings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn import run, timeline, windows
from hypothesis import given
from hypothesis import strategies as st

from meshscope.analysis.breakdown import Breakdown, breakdown, combine, measure, per_step
from meshscope.spans import Counts

HALF_HIDDEN = """
    0 compute     ####....####
    0 all_reduce  ..####......
"""


def total(picture: str) -> Breakdown:
    return breakdown(timeline(picture))[0].total


def test_only_communication_beside_compute_is_hidden() -> None:
    assert total(HALF_HIDDEN) == Breakdown(
        span_ns=120, compute_ns=80, collective_ns=40, hidden_ns=20, exposed_ns=20, busy_ns=100, idle_ns=20, wait_ns=0
    )


def test_two_kernels_at_once_are_one_busy_interval() -> None:
    found = total("""
        0 compute  ####....
        0 compute  ..####..
    """)
    assert (found.compute_ns, found.busy_ns, found.span_ns) == (60, 60, 60)


def test_copies_beside_compute_are_busy_once() -> None:
    found = total("""
        0 compute  ####..
        0 copy     ..####
    """)
    assert (found.copy_ns, found.busy_ns, found.idle_ns) == (40, 60, 0)


def test_what_is_no_device_work_is_no_time() -> None:
    found = total("""
        0 host     ##########
        0 other    ##########
        0 compute  ..##..##..
    """)
    assert (found.span_ns, found.busy_ns, found.idle_ns) == (60, 40, 20)


def test_waiting_is_given_where_it_is_told_apart_and_none_where_not() -> None:
    picture = """
        0 all_reduce  ######
        0 wait        ####..
    """
    assert breakdown(timeline(picture))[0].total.wait_ns == 40
    assert breakdown(timeline(picture, tells_wait=False))[0].total.wait_ns is None


def test_a_step_is_what_lies_within_its_bounds() -> None:
    (rank,) = breakdown(
        timeline("""
        0 step        ..aaaabbbb..
        0 compute     ######....##
        0 all_reduce  ....####....
    """)
    )
    assert rank.steps == (0, 1)
    assert rank.per_step == Breakdown(
        span_ns=40, compute_ns=20, collective_ns=20, hidden_ns=10, exposed_ns=10, busy_ns=30, idle_ns=10, wait_ns=0
    )


def test_the_time_between_windows_is_nobodys_idle_time() -> None:
    (first,) = windows("0 compute ##..##")
    far = first.shifted(1_000_000)
    (rank,) = breakdown(run(windows=(first, far)))
    assert (rank.total.span_ns, rank.total.idle_ns) == (120, 40)
    assert rank.events_read == 2 * first.counts.read


def test_the_newest_window_is_told_apart() -> None:
    (first,) = windows("""
        0 step     aaaa
        0 compute  ####
    """)
    (second,) = windows("""
        0 step     aaaa
        0 compute  ##..
    """)
    (rank,) = breakdown(run(windows=(first, replace(second, steps=(7,)).shifted(1000))))
    assert rank.newest is not None
    assert (rank.newest.compute_ns, rank.newest_steps) == (20, (7,))
    assert rank.per_step is not None
    assert rank.per_step.compute_ns == 30


def test_ranks_are_told_apart_and_in_order() -> None:
    found = breakdown(
        timeline("""
        1 compute  ##
        0 compute  ####
    """)
    )
    assert [(rank.rank, rank.total.compute_ns) for rank in found] == [(0, 40), (1, 20)]


def test_counts_of_damage_add_up() -> None:
    (window,) = windows("0 compute ##")
    damaged = replace(window, counts=Counts(read=9, device=1, dropped={"no time": 2}, repaired={"bad": 1}))
    (rank,) = breakdown(run(windows=(damaged, replace(damaged))))
    assert (rank.events_read, rank.dropped, rank.repaired) == (18, {"no time": 4}, {"bad": 2})


def test_a_window_without_device_work_has_no_steps_to_tell_of() -> None:
    (rank,) = breakdown(
        timeline(
            """
        0 step  aaaa
        0 host  ####
    """,
            device_kind="none",
        )
    )
    assert (rank.device_kind, rank.per_step, rank.total.span_ns) == ("none", None, 0)


def test_no_window_is_no_answer() -> None:
    assert breakdown(run()) == ()


kinds = st.sampled_from(["compute", "all_reduce", "copy", "wait", "host"])
lines = st.lists(st.tuples(kinds, st.text("#.", min_size=1, max_size=24)), min_size=1, max_size=6)
cuts = st.lists(st.integers(1, 8), min_size=1, max_size=5)


@given(lines, cuts)
def test_parts_always_add_up(drawn: list[tuple[str, str]], widths: list[int]) -> None:
    step = "".join("ab"[number % 2] * width for number, width in enumerate(widths))
    picture = "\n".join([f"0 step {step}", *(f"0 {kind} {line}" for kind, line in drawn)])
    (window,) = windows(picture)
    part = measure(window)
    for found in (part.total, part.stepped, per_step(part) or Breakdown()):
        assert found.hidden_ns + found.exposed_ns == found.collective_ns
        assert found.busy_ns + found.idle_ns == found.span_ns
        assert all(value is None or value >= 0 for value in vars(found).values())
        assert found.busy_ns >= max(found.compute_ns, found.collective_ns)


@given(st.permutations([0, 1, 2, 3]), st.integers(1, 3))
def test_combining_is_associative(order: list[int], cut: int) -> None:
    parts = [measure(windows(f"0 step {'a' * n}\n0 compute {'#' * (n + 1)}\n0 x ..{'#' * n}")[0]) for n in (1, 2, 3, 4)]
    picked = [parts[number] for number in order]
    assert combine([combine(picked[:cut]), combine(picked[cut:])]).total == combine(picked).total


def test_a_window_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    (window,) = windows("0 compute ##")
    first = measure(window)
    monkeypatch.setattr(np, "argsort", None)  # measuring again would need it
    assert measure(window) is first
