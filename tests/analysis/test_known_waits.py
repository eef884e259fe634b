"""Waiting of which a part is known."""

from __future__ import annotations

from meeting import MS, met, run_of, without_first

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.known_waits import KnownWait, known_waits
from meshscope.reports.text import report


def test_calls_that_another_window_does_not_hold_leave_what_is_known_of_the_rest() -> None:
    """Rank 1 is 10 ms late to each of six calls in one step, and its window begins with the second."""
    first, second = met([[at * 100 * MS for at in range(6)], [(at * 100 + 10) * MS for at in range(6)]], MS,
                        steps=[0] * 6, host="one", cannot_say=(("wait_ns", "not recorded"),))  # fmt: skip
    run = run_of([first, without_first(second, 1)])
    assert breakdown(run)[0].per_step.wait_ns is None  # type: ignore[union-attr]
    assert known_waits(run) == {0: KnownWait(rank=0, least_ns=50 * MS, matched=5, calls=6)}
    text = " ".join(report([run], encoding="utf-8").split())
    assert "≥ 50.0" in text
    assert "≥: by the 5 of 6 calls of those ranks that have a counterpart on every rank" in text


def test_where_all_or_nothing_is_matched_there_is_no_bound() -> None:
    whole = met([[0, 100 * MS], [MS, 101 * MS]], MS, steps=[0, 0], host="one")
    assert known_waits(run_of(whole)) == {}
    assert known_waits(run_of(whole[:1])) == {}
