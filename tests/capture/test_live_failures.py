"""Ranks that die, raise or hang, supervisors that are killed, and stops: each ends everything, and says why."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import psutil
import pytest

from meshscope.capture import launch
from meshscope.recording import control
from meshscope.recording.control import Ask
from meshscope.recording.entries import Ended, RankEnded, StepDone, WindowAsked
from meshscope.recording.feed import Feed

from .conftest import is_gone

pytestmark = [pytest.mark.live, pytest.mark.slow]


def _reaches(live, strategy: str, step: int) -> Callable[[], bool]:
    return lambda: any(isinstance(e, StepDone) and e.step >= step for e in live.entries(strategy, "rank0"))


def _rank_ends(live, strategy: str = "toy") -> dict[int, RankEnded]:
    ends = [e for e in live.entries(strategy) if isinstance(e, RankEnded)]
    assert len({e.rank for e in ends}) == len(ends), "a rank has one last word"
    return {e.rank: e for e in ends}


def _none_left(processes: list[psutil.Process], patience_s: float = 5) -> bool:
    deadline = time.monotonic() + patience_s
    while not all(map(is_gone, processes)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_killed_rank_ends_the_run_within_ten_seconds_and_is_named(record) -> None:
    live = record("toy", ranks=3, steps=4000, batch=6, options=("--pace-ms", "50"))
    live.until(_reaches(live, "toy", 5))
    processes = live.family()
    os.kill(live.pids("toy")[1], signal.SIGKILL)
    killed = time.monotonic()
    ended = live.wait(10)

    assert time.monotonic() - killed < 10
    assert _none_left(processes)
    assert (ended.outcome, ended.rank, live.exit_code()) == ("failed", 1, 1)
    assert "SIGKILL" in ended.why
    ends = _rank_ends(live)
    assert ends[1].exit_code == -9
    assert any("rank 1 of 3 trains" in line for line in ends[1].log_lines)
    feed = Feed(live.folder / "toy")
    assert any(isinstance(entry, Ended) for entry in feed.poll())
    assert feed.skipped == 0


@pytest.mark.parametrize(
    ("fault", "exit_code", "why"),
    [
        ("raise", 1, "ValueError: the toy breaks on rank 1 at step 6"),
        ("exit", 7, "exit code 7"),
        ("die", -11, "SIGSEGV"),
    ],
)
def test_a_rank_that_fails_is_named_with_its_reason(record, fault: str, exit_code: int, why: str) -> None:
    live = record("toy", ranks=2, steps=4000, options=("--fault", f"{fault}:1:6"))
    live.until(_reaches(live, "toy", 5))
    processes = live.family()
    ended = live.wait(60)

    assert _none_left(processes)
    assert (ended.outcome, ended.rank) == ("failed", 1), ended
    assert why in ended.why
    ends = _rank_ends(live)
    assert ends[1].exit_code == exit_code
    assert set(ends) == {0, 1}
    if fault == "raise":
        assert "ValueError: the toy breaks on rank 1 at step 6" in ends[1].log_lines[-1]


def test_a_jax_process_that_raises_is_named_with_its_reason(record) -> None:
    live = record("jax-toy", ranks=2, steps=100, options=("--fault", "raise:0:6"))
    ended = live.wait()
    assert (ended.outcome, ended.rank) == ("failed", 0)
    assert "ValueError: the toy breaks on rank 0 at step 6" in ended.why


def test_a_rank_stopped_by_a_signal_is_the_one_that_hangs(record) -> None:
    live = record("toy", ranks=2, steps=4000, patience_s=3.0)
    live.until(_reaches(live, "toy", 5))
    processes = live.family()
    os.kill(live.pids("toy")[1], signal.SIGSTOP)
    ended = live.wait(30)

    assert _none_left(processes)
    assert (ended.outcome, ended.rank) == ("failed", 1)
    assert "hangs" in ended.why


def test_a_rank_asleep_ends_the_run_and_shows_where_it_stood(record) -> None:
    live = record("toy", ranks=2, steps=4000, patience_s=3.0, options=("--fault", "hang:1:6"))
    live.until(_reaches(live, "toy", 5))
    processes = live.family()
    ended = live.wait(30)

    assert _none_left(processes)
    assert ended.outcome == "failed"
    assert "no rank made progress" in ended.why or "hangs" in ended.why
    assert any("fail_as_asked" in line for line in _rank_ends(live)[1].log_lines), "the stack is in the log's tail"


def test_a_killed_supervisor_takes_its_ranks_along_and_the_recording_opens(record) -> None:
    live = record("toy", ranks=2, steps=4000)
    live.until(_reaches(live, "toy", 5))
    processes = live.family()
    assert len(processes) >= 4, "supervisor, torchrun and two ranks"
    os.kill(live.pid, signal.SIGKILL)

    assert _none_left(processes)
    feed = Feed(live.folder / "toy")
    told = {type(entry) for entry in feed.poll()}
    assert StepDone in told
    assert Ended not in told


@pytest.mark.parametrize("strategy", ["toy", "jax-toy"])
@pytest.mark.parametrize("way", ["ask", "SIGTERM", "SIGINT"])
def test_a_stop_ends_every_child_and_the_plan(record, way: str, strategy: str) -> None:
    live = record(strategy, "toy-single", ranks=2, steps=40_000)
    live.until(_reaches(live, strategy, 3))
    processes = live.family()
    if way == "ask":
        control.ask(live.folder, Ask(what="stop"))
    else:
        os.kill(live.pid, signal.Signals[way])
    ended = live.wait(15)

    assert _none_left(processes)
    assert (ended.outcome, live.exit_code()) == ("stopped", 0)
    assert [e.outcome for e in live.entries(strategy) if isinstance(e, Ended)] == ["stopped"]
    assert not (live.folder / "toy-single").exists(), "what had not begun does not begin"


def test_a_closed_terminal_means_nothing_to_the_supervisor(record) -> None:
    live = record("toy", ranks=2, steps=60)
    live.until(_reaches(live, "toy", 5))
    os.kill(live.pid, signal.SIGHUP)
    assert live.wait(60).outcome == "done"


def test_a_failed_strategy_fails_the_plan_and_the_next_one_still_runs(record) -> None:
    live = record("toy", "toy-single", ranks=2, steps=12, options=("--fault", "raise:1:6"))
    ended = live.wait()
    assert (ended.outcome, ended.rank, live.exit_code()) == ("failed", 1, 1)
    assert ended.why.startswith("toy: rank 1: ValueError")
    assert [e.outcome for e in live.entries("toy-single") if isinstance(e, Ended)] == ["done"]


def test_a_launcher_that_cannot_start_fails_with_its_last_line(record, tmp_path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    toy = launch.Path(__file__).parent / "toy"
    (broken / "options.py").write_text((toy / "options.py").read_text())
    (broken / "torch_toy.py").write_text((toy / "torch_toy.py").read_text().replace("import torch\n", "import torhc\n"))
    live = record("toy", ranks=2, workloads=str(broken))
    ended = live.wait()
    assert ended.outcome == "failed"
    assert "ModuleNotFoundError: No module named 'torhc'" in ended.why


def test_a_key_press_brings_one_extra_window_on_every_rank(record) -> None:
    live = record("toy", ranks=2, steps=150, options=("--pace-ms", "30"))
    live.until(_reaches(live, "toy", 20))
    control.ask(live.folder, Ask(what="profile"))
    assert live.wait().outcome == "done"
    entries = live.entries("toy")
    asked = [e for e in entries if isinstance(e, WindowAsked) and e.reason == "key"]
    assert len(asked) == 1
    names = {path.name for path in (live.folder / "toy" / "traces").iterdir()}
    steps = f"steps{asked[0].first_step}-{asked[0].end_step - 1}"
    assert {f"rank{r}-{steps}.pt.trace.json.gz" for r in (0, 1)} <= names
