"""Whose fault it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from meshscope.capture import causes, processes
from meshscope.capture.causes import Death
from meshscope.capture.roster import Roster, absent, hung
from meshscope.recording.entries import Ended, FlightWritten, Phase, RankEnded, RankStarted, StepDone
from meshscope.recording.journal import Journal

LOST_PEER = "RuntimeError: [../gloo/transport/tcp/pair.cc:538] Connection closed by peer [127.0.0.1]:12345"
S = 1_000_000_000


def test_a_rank_ended_by_a_signal_comes_before_the_peers_that_miss_it() -> None:
    peers = [Death(0, 100, 1, LOST_PEER), Death(3, 105, 1, LOST_PEER)]
    assert causes.first([*peers, Death(2, 140, -9)]).rank == 2


def test_an_error_of_its_own_comes_before_a_lost_peer_and_the_earlier_of_two_comes_first() -> None:
    own = Death(1, 300, 1, "ValueError: no")
    assert causes.first([Death(0, 100, 1, LOST_PEER), own]) == own
    assert causes.first([Death(2, 301, 1, "ValueError: no"), own]) == own


def test_lost_peers_alone_name_the_first_of_them() -> None:
    assert causes.first([Death(1, 20, 1, LOST_PEER), Death(0, 10, 1, LOST_PEER)]).rank == 0


def test_the_launcher_s_closing_report_tells_exit_codes(tmp_path: Path) -> None:
    report = """
Root Cause (first observed failure):
[0]:
  time      : 2026-11-29_14:36:00
  host      : vm
  rank      : 2 (local_rank: 2)
  exitcode  : -9 (pid: 1234)
  error_file: <N/A>
[1]:
  time      : 2026-11-29_14:36:00
  host      : vm
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 1232)
"""
    (tmp_path / "launcher.txt").write_text(report)
    assert causes.elastic_codes(tmp_path / "launcher.txt") == {2: -9, 0: 1}
    assert causes.elastic_codes(tmp_path / "absent.txt") == {}


def test_the_last_lines_leave_out_what_the_profiler_says_of_itself(tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(20)] + ["USDT:2026-11-29 profiler_stop", "", "ValueError: no"]
    (tmp_path / "rank0.txt").write_text("\n".join(lines))
    assert causes.last_lines(tmp_path / "rank0.txt")[-2:] == ("line 19", "ValueError: no")
    assert len(causes.last_lines(tmp_path / "rank0.txt")) == 8


def test_a_rank_that_ended_without_an_exception_is_named_with_its_code_and_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "launcher.txt").write_text("rank : 1 (local_rank: 1)\n  exitcode : 70 (pid: 12)\n")
    (tmp_path / "rank1.txt").write_text("rank 1 of 2 trains\nfatal: no more\n")
    why = causes.ended(Roster(tmp_path, 2), tmp_path, 1).why
    assert why == "rank 1: it ended with exit code 70; its last line: fatal: no more"


def _roster(tmp_path: Path, *entries: object) -> Roster:
    for entry in entries:
        journal = Journal(tmp_path, f"rank{entry.rank}", t0_unix_ns=0)
        journal.append(entry)
    roster = Roster(tmp_path, ranks=2)
    roster.fresh(0)
    return roster


def test_a_launcher_that_fails_before_any_rank_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / "launcher.txt").write_text("Traceback\nRuntimeError: no port is free\n")
    ended = causes.ended(_roster(tmp_path), tmp_path, 1)
    assert (ended.outcome, ended.rank) == ("failed", -1)
    assert ended.why == "the launcher: it ended with exit code 1 (RuntimeError: no port is free)"


def test_a_rank_that_failed_fails_the_run_whatever_the_launcher_says(tmp_path: Path) -> None:
    roster = _roster(tmp_path, RankEnded(t_ns=5, rank=1, exit_code=1, why="ValueError: no"))
    assert causes.ended(roster, tmp_path, 0) == Ended(t_ns=0, outcome="failed", rank=1, why="rank 1: ValueError: no")


def test_ranks_without_a_last_word_get_one(tmp_path: Path) -> None:
    roster = _roster(tmp_path, RankEnded(t_ns=5, rank=1, exit_code=1, why="ValueError: no"))
    failed = Ended(t_ns=0, outcome="failed", rank=1, why="rank 1: ValueError: no")
    (word,) = causes.last_words(roster, tmp_path, failed, 9)
    assert (word.rank, word.exit_code, word.why) == (0, -15, "ended with the run")


@pytest.mark.parametrize(
    ("phase", "now_s", "is_hung"),
    [("training", 50, False), ("training", 70, True), ("compiling", 70, False), ("compiling", 700, True)],
)
def test_patience_depends_on_the_phase(tmp_path: Path, phase: str, now_s: int, is_hung: bool) -> None:
    roster = _roster(
        tmp_path,
        RankStarted(t_ns=0, rank=0, device=0, device_name="", device_kind="cpu", pid=os.getpid()),
        Phase(t_ns=0, rank=0, phase=phase),
    )
    assert bool(hung(roster, now_s * S, patience_s=60, startup_patience_s=600)) == is_hung


def test_patience_grows_with_the_longest_step(tmp_path: Path) -> None:
    roster = _roster(
        tmp_path,
        Phase(t_ns=0, rank=0, phase="training"),
        StepDone(t_ns=20 * S, rank=0, step=0, start_ns=0, end_ns=20 * S),
    )
    assert hung(roster, 120 * S, patience_s=60, startup_patience_s=600) is None
    assert hung(roster, 230 * S, patience_s=60, startup_patience_s=600) is not None


def test_heartbeats_do_not_make_a_phase_begin_again(tmp_path: Path) -> None:
    beats = [Phase(t_ns=n * S, rank=0, phase="stopping profiler", detail=f"{n} s") for n in range(0, 700, 50)]
    roster = _roster(tmp_path, *beats)
    assert hung(roster, 590 * S, patience_s=60, startup_patience_s=600) is None
    assert hung(roster, 690 * S, patience_s=60, startup_patience_s=600) is not None


def test_the_rank_that_is_behind_is_the_one_that_hangs(tmp_path: Path) -> None:
    entries = []
    for rank, steps in ((0, 9), (1, 8)):
        pid = os.getpid() if rank else os.getppid()
        entries.append(RankStarted(t_ns=0, rank=rank, device=0, device_name="", device_kind="cpu", pid=pid))
        entries.append(Phase(t_ns=0, rank=rank, phase="training"))
        entries.append(StepDone(t_ns=S, rank=rank, step=steps, start_ns=0, end_ns=S))
    stuck = hung(_roster(tmp_path, *entries), 100 * S, patience_s=60, startup_patience_s=600)
    assert stuck is not None
    assert stuck[0] == 1
    assert "step 9" in stuck[1]


def _child(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


def _zombie_within(pid: int, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("code", "expected"), [("import os; os._exit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9)]
)
def test_the_process_table_tells_how_a_process_ended_that_nobody_waited_for(code: str, expected: int) -> None:
    child = _child(code)
    assert processes.exit_code(os.getpid()) is None, "a living process has none"
    _zombie_within(child.pid, 10)
    assert processes.exit_code(child.pid) == expected
    child.wait()
    assert processes.exit_code(child.pid) is None


def test_ending_is_gentle_first_and_reaches_the_deaf_and_the_stopped() -> None:
    deaf = _child("import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)")
    stopped = _child("import time; print(1, flush=True); time.sleep(60)")
    for child in (deaf, stopped):
        assert child.stdout is not None
        child.stdout.readline()
    os.kill(stopped.pid, signal.SIGSTOP)
    processes.end([psutil.Process(deaf.pid), psutil.Process(stopped.pid)], patience_s=0.5)
    assert deaf.wait(5) == -signal.SIGKILL
    assert stopped.wait(5) == -signal.SIGTERM


@pytest.mark.parametrize(
    ("called", "named"),
    [
        (({"0": 12}, {"0": 11}), 1),
        (({"0": 11}, {"0": 12}), 0),
        (({"0": 12}, {"0": 12}), None),
        (({"0": 12, "1": 3}, {"0": 11, "1": 4}), None),
        (({"0": 12, "tensor": 3}, {"0": 12}), None),
        (({"0": 12},), None),
    ],
    ids=["the second", "the first", "none is behind", "each is behind", "another group", "a dump is missing"],
)
def test_the_rank_that_lacks_a_collective_is_the_one_the_others_wait_for(
    tmp_path: Path, called: tuple[dict[str, int], ...], named: int | None
) -> None:
    started = [
        RankStarted(t_ns=0, rank=rank, device=0, device_name="", device_kind="cpu", pid=pid)
        for rank, pid in enumerate((os.getpid(), os.getppid()))
    ]
    dumps = [FlightWritten(t_ns=5, rank=rank, path="", newest=newest) for rank, newest in enumerate(called)]
    roster = _roster(tmp_path, *started, *dumps)
    found = absent(roster)
    assert (found and found[0]) == named
    if found is not None:
        assert found[1] == "the others wait in collective 12 of group 0"


def test_a_dump_that_was_asked_for_shows_no_life(tmp_path: Path) -> None:
    roster = _roster(
        tmp_path, Phase(t_ns=0, rank=0, phase="training"), FlightWritten(t_ns=69 * S, rank=0, path="", newest={"0": 1})
    )
    assert hung(roster, 70 * S, patience_s=60, startup_patience_s=600) is not None
