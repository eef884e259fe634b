"""What a run does now, and how it ended."""

from __future__ import annotations

import pytest
from drawn import run, steps

from meshscope.analysis.progress import progress
from meshscope.recording.entries import Ended, Log, Phase, TraceWritten, WindowAsked
from meshscope.run import SILENCE_NS

S = 1_000_000_000


def phase(t_s: float, name: str, rank: int = 0, detail: str = "") -> Phase:
    return Phase(t_ns=round(t_s * S), rank=rank, phase=name, detail=detail)


def test_before_anything_is_written_it_launches() -> None:
    found = progress(run())
    assert (found.state, found.step, found.planned) == ("launching", 0, 10)


def test_a_step_counts_once_every_rank_has_done_it() -> None:
    entries = [entry for entry in steps([100] * 4) if not (entry.rank == 1 and entry.step == 3)]
    assert progress(run([*entries, phase(0, "training"), phase(0, "training", rank=1)])).step == 3


@pytest.mark.parametrize(
    ("phases", "state"),
    [
        (["training", "training"], "training"),
        (["stopping profiler", "training"], "stopping profiler"),
        (["training", "profiling"], "profiling"),
        (["compiling", "training"], "compiling"),
        (["ending", "training"], "training"),
    ],
)
def test_the_run_does_what_its_ranks_wait_for(phases: list[str], state: str) -> None:
    entries = [phase(1, name, rank) for rank, name in enumerate(phases)]
    assert progress(run([phase(0, "launching", rank=-1), *entries])).state == state


def test_a_heartbeat_does_not_restart_the_phase() -> None:
    beats = [phase(1, "training"), phase(2, "stopping profiler"), phase(3, "stopping profiler", detail="1 s")]
    found = progress(run(beats))
    assert (found.state, found.since_ns, found.detail) == ("stopping profiler", 2 * S, "1 s")


@pytest.mark.parametrize("outcome", ["done", "failed", "stopped"])
def test_the_last_entry_says_how_it_ended(outcome: str) -> None:
    ended = Ended(t_ns=5, outcome=outcome, why="rank 1 was killed (SIGKILL)", rank=1)
    found = progress(run([phase(0, "training"), ended]))
    assert (found.state, found.why, found.rank) == (outcome, "rank 1 was killed (SIGKILL)", 1)


def test_silence_means_that_the_supervisor_is_gone() -> None:
    entries = [phase(1, "training"), Log(t_ns=2 * S, level="info", text="hello")]
    assert progress(run(entries, now_ns=2 * S + SILENCE_NS - 1)).state == "training"
    lost = progress(run(entries, now_ns=2 * S + SILENCE_NS))
    assert (lost.state, lost.since_ns) == ("lost", 2 * S)
    assert "15 s" in lost.why


def test_an_ended_run_is_never_lost() -> None:
    assert progress(run([Ended(t_ns=0, outcome="done")], now_ns=1000 * S)).state == "done"


def test_the_next_window_and_the_newest_one() -> None:
    trace = TraceWritten(t_ns=7, rank=0, path="x", format="kineto", first_step=1, end_step=3, size_bytes=1)
    asked = [WindowAsked(t_ns=0, first_step=first, end_step=first + 2, reason="cycle") for first in (1, 9)]
    found = progress(run([*steps([1] * 4), trace, *asked], now_ns=20_000_000))
    assert (found.next_window_steps, found.window_steps, found.window_age_ns) == (5, (1, 2), 20_000_000 - 7)


def test_no_window_is_asked_for() -> None:
    found = progress(run(steps([1] * 4)))
    assert (found.next_window_steps, found.window_steps, found.window_age_ns) == (None, (), None)
