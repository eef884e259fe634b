"""The cycle: what ranks' journals make it ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshscope.capture.cycle import Cycle
from meshscope.capture.request import Windows
from meshscope.experiment import Experiment
from meshscope.recording.control import Ask, Asked
from meshscope.recording.entries import StepDone, TraceWritten, WindowAsked
from meshscope.recording.journal import Journal, Tail

MS = 1_000_000


@pytest.fixture
def cycle(tmp_path: Path) -> Cycle:
    experiment = Experiment(
        t0_unix_ns=0, strategy="ddp", title="", framework="torch", ranks=2, device_kind="cpu", model="tiny"
    )
    return Cycle(tmp_path, Windows(active=2), experiment, Journal(tmp_path, "supervisor", t0_unix_ns=0))


def _step(number: int, length_ms: int = 100, *, rank: int = 0, is_profiled: bool = False) -> StepDone:
    start = number * 100 * MS
    end = start + length_ms * MS
    return StepDone(t_ns=end, rank=rank, step=number, start_ns=start, end_ns=end, is_profiled=is_profiled)


def _trace(first: int, end: int, rank: int, stop_ms: int) -> TraceWritten:
    return TraceWritten(
        t_ns=0, rank=rank, path="", format="kineto", first_step=first, end_step=end, size_bytes=1, stop_ns=stop_ms * MS
    )


def _asked(cycle: Cycle) -> list[Ask]:
    return Asked(cycle.recording).new()


def test_the_ranks_and_the_journal_hear_of_the_same_windows(cycle: Cycle) -> None:
    cycle.open()
    told = [e for e in Tail(cycle.recording / "journal" / "supervisor.jsonl").read() if isinstance(e, WindowAsked)]
    assert [(e.first_step, e.end_step) for e in told] == [(a.first_step, a.end_step) for a in _asked(cycle)] == [(5, 7)]


def test_a_window_costs_the_slowest_stop_and_what_its_steps_took_longer(cycle: Cycle) -> None:
    cycle.open()
    cycle.take([_step(n) for n in range(4)], [])
    cycle.take([_step(n, 110, is_profiled=True) for n in (4, 5, 6)], [])
    cycle.take([_trace(5, 7, 0, 40), _trace(5, 7, 1, 60), _step(7, 150, is_profiled=True)], [])
    assert cycle.training.costs_ns == (60 * MS + 3 * 10 * MS + 50 * MS,)


def test_the_next_window_waits_until_the_budget_allows_it(cycle: Cycle) -> None:
    cycle.open()
    cycle.take([_step(n, is_profiled=n in (4, 5, 6)) for n in range(7)], [])
    cycle.take([_trace(5, 7, 0, 100), _step(7, is_profiled=True)], [])
    for number in range(8, 120):
        cycle.take([_step(number)], [])
    later = [ask.first_step for ask in _asked(cycle)][1:]
    # 2 × 100 ms are 3 % of 6.7 s, which is 67 steps.
    assert later[0] == pytest.approx(67 + 7, abs=4)


def test_a_key_pressed_when_there_is_no_room_is_remembered(cycle: Cycle) -> None:
    cycle.open()
    cycle.take([_step(0)], [Ask(what="profile")])
    assert len(_asked(cycle)) == 1, "the first window is in the way"
    for number in range(1, 9):
        cycle.take([_step(number)], [])
    reasons = [ask.reason for ask in _asked(cycle)]
    assert reasons[:2] == ["cycle", "key"]
    assert reasons.count("key") == 1


def test_a_slow_step_asks_by_itself_and_says_so(cycle: Cycle) -> None:
    cycle.open()
    for number in range(40):
        cycle.take([_step(number, 100 + number % 2, is_profiled=number in (4, 5, 6, 7))], [])
        if number == 6:
            cycle.take([_trace(5, 7, 0, 75)], [])
    assert len(_asked(cycle)) == 1, "two windows of 75 ms are 3 % of 5 s, and it is not that far yet"
    cycle.take([_step(40, 300)], [])
    assert [ask.reason for ask in _asked(cycle)][-1] == "slow step"
    assert b"slower than mean" in (cycle.recording / "journal" / "supervisor.jsonl").read_bytes()


def test_another_rank_s_steps_count_for_progress_and_not_for_time(cycle: Cycle) -> None:
    cycle.take([_step(9, 900, rank=1)], [])
    assert cycle.training.step == 9
    assert cycle.training.durations_ns == ()
