"""Ranks of a user's own command that stand still: who is told of, when, and that nothing of theirs is touched."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from meshscope.capture.own.standing import Standing
from meshscope.capture.roster import Roster
from meshscope.capture.workers import own_stalls
from meshscope.capture.workers.own_journal import OwnJournal
from meshscope.capture.workers.own_rank import Enlisted
from meshscope.experiment import Experiment
from meshscope.recording.control import STAND, Asked
from meshscope.recording.entries import Entry, Log, Phase, RankStarted, StacksTaken, StepDone
from meshscope.recording.journal import Journal, Tail

S = 1_000_000_000


class Told:
    """Two ranks at their training, and what is said of them."""

    def __init__(self, recording: Path) -> None:
        self.journals = [Journal(recording, f"rank{rank}", t0_unix_ns=0) for rank in range(2)]
        self.roster = Roster(recording, ranks=0)
        self.standing = Standing(recording, self.roster, Journal(recording, "supervisor", t0_unix_ns=0))
        self.asked = Asked(recording)
        # Two processes that are there.
        for (rank, journal), pid in zip(enumerate(self.journals), (os.getpid(), os.getppid()), strict=True):
            journal.append(RankStarted(t_ns=0, rank=rank, device=0, device_name="cpu", device_kind="cpu", pid=pid))
            journal.append(Phase(t_ns=0, rank=rank, phase="training"))

    def write(self, entry: Entry) -> None:
        self.journals[entry.rank].append(entry)  # type: ignore[attr-defined]

    def step(self, rank: int, at_s: float, seconds: float = 0.1) -> None:
        end_ns = round(at_s * S)
        self.write(
            StepDone(t_ns=end_ns, rank=rank, step=int(at_s * 10), start_ns=end_ns - round(seconds * S), end_ns=end_ns)
        )

    def at(self, seconds: float) -> str:
        now_ns = round(seconds * S)
        log: Log | None = self.standing.take(self.roster.fresh(now_ns), now_ns)
        return "" if log is None else log.text

    def questions(self) -> int:
        return sum(ask.what == STAND for ask in self.asked.new())


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr("meshscope.capture.processes.is_alive", lambda _: True)
    return Told(tmp_path)


def test_the_ranks_that_still_step_and_those_that_do_not_are_told_apart_once(two: Told) -> None:
    two.step(0, 1)
    two.step(1, 1)
    assert (two.at(10.9), two.questions()) == ("", 0)
    two.step(0, 11)
    assert (two.at(11.1), two.questions()) == ("", 1), "asked, and waited for"
    frames = ("/v/lib/python3.11/queue.py:170 get", "/w/train.py:12 fetch")
    two.write(StacksTaken(t_ns=12 * S, rank=1, path="", threads=(frames,)))
    two.write(StacksTaken(t_ns=12 * S, rank=0, path="", threads=(("/w/train.py:20 main",),)))
    assert two.at(12) == "Rank 1 ended no step for 11 s, while rank 0 still steps. Rank 1 is in fetch (train.py:12)."
    assert (two.at(13), two.questions()) == ("", 0), "once"
    two.step(1, 14)
    two.step(0, 14)
    assert two.at(14.2) == "Rank 1 is no longer without a step."


def test_a_rank_that_gives_no_answer_is_told_of_all_the_same(two: Told) -> None:
    two.step(0, 1)
    two.step(1, 1)
    two.at(11.1)
    assert two.at(12) == ""
    assert two.at(14.2) == "Ranks 0–1 ended no step for 13 s."


def test_long_steps_and_what_is_no_training_are_no_standstill(two: Told) -> None:
    two.step(0, 5, seconds=2)
    two.step(1, 5, seconds=2)
    two.at(40)
    assert two.questions() == 0, "twenty steps of two seconds"
    two.write(Phase(t_ns=41 * S, rank=0, phase="ending"))
    two.write(Phase(t_ns=41 * S, rank=1, phase="stopping profiler"))
    two.at(60)
    assert two.questions() == 0


def test_an_answer_has_the_threads_of_the_script_and_none_of_its_arguments(tmp_path: Path) -> None:
    here = threading.Event()
    done = threading.Event()

    def fetch(token: str) -> None:
        here.set()
        done.wait(10)
        del token

    thread = threading.Thread(target=fetch, args=("secret",))
    thread.start()
    here.wait(10)
    head = Experiment(t0_unix_ns=0, strategy="x", title="", framework="", ranks=0, device_kind="cpu", model="")
    me = Enlisted(tmp_path, head, OwnJournal(tmp_path, 0, t0_unix_ns=0))
    own_stalls.answer(me, 1)
    done.set()
    thread.join()
    [taken] = Tail(tmp_path / "journal" / "rank0.jsonl").read()
    assert isinstance(taken, StacksTaken)
    whole = (tmp_path / taken.path).read_text()
    assert "fetch" in whole
    assert "secret" not in whole
    assert "token=" not in whole
