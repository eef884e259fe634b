"""A run that stands still is asked before it is ended, and told of before that."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshscope.capture import watchdog
from meshscope.capture.request import Request
from meshscope.capture.roster import Roster, standing
from meshscope.capture.watchdog import Watchdog
from meshscope.capture.xla_flags import waiting_flags
from meshscope.recording.entries import FlightWritten, Log, Phase, StacksTaken, StepDone
from meshscope.recording.journal import Journal, Tail

S = 1_000_000_000
OWN = "/home/me/train.py:12 fetch(rank=1)"
LIBRARY = "/lib/python3.11/site-packages/torch/graph.py:9 backward"
JAX = "/lib/python3.11/site-packages/jax/stages.py:9 call"


class Still(Journal):
    """A journal whose clock a test sets."""

    at_ns = 0

    def now_ns(self) -> int:
        return self.at_ns


def dog(
    folder: Path, *, ranks: int = 2, patience_s: float = 120, has_flight: bool = True, answers: tuple[object, ...] = ()
) -> tuple[Watchdog, Still]:
    """A watchdog over ranks that have done a step of a second; ``answers`` come once they are asked."""
    journal = Still(folder, "supervisor", t0_unix_ns=0)
    roster = Roster(folder, ranks)
    for member in roster.members.values():
        member.fold(Phase(t_ns=0, rank=member.rank, phase="training"))
        member.fold(StepDone(t_ns=S, rank=member.rank, step=0, start_ns=0, end_ns=S))

    def look() -> None:
        for answer in answers:
            roster.members[answer.rank].fold(answer)  # type: ignore[attr-defined]

    request = Request(strategies=("toy",), patience_s=patience_s)
    return Watchdog(folder, roster, request, journal, has_flight, look), journal


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks are one process here, and nobody waits for answers that will not come."""
    monkeypatch.setattr(watchdog, "_ANSWER_S", 0.2)
    monkeypatch.setattr(watchdog, "_SETTLE_S", 0.0)
    monkeypatch.setattr(Roster, "leading", property(lambda roster: list(roster.members.values())))


def told(folder: Path) -> list[str]:
    return [e.text for e in Tail(folder / "journal" / "supervisor.jsonl").read() if isinstance(e, Log)]


def stood(rank: int, *frames: str) -> StacksTaken:
    return StacksTaken(t_ns=20 * S, rank=rank, path="", threads=(frames,))


def flew(rank: int, last: int) -> FlightWritten:
    return FlightWritten(t_ns=20 * S, rank=rank, path="", newest={"0": last})


def test_a_standstill_is_told_long_before_patience_is_over(tmp_path: Path) -> None:
    answers = (stood(0, LIBRARY, OWN), stood(1, OWN), flew(0, 7), flew(1, 6))
    found, journal = dog(tmp_path, answers=answers)
    journal.at_ns = 10 * S
    assert found.stuck() is None
    assert told(tmp_path) == []
    journal.at_ns = 12 * S
    assert found.stuck() is None, "the run goes on"
    (said,) = told(tmp_path)
    assert said.startswith("Looks like a hang of rank 1: no step has ended for 10 s; the others wait in collective 7")
    assert said.endswith("it stands in fetch(rank=1) (train.py:12).")
    journal.at_ns = 30 * S
    found.stuck()
    assert len(told(tmp_path)) == 1, "it is told once"


def test_a_run_that_goes_on_was_no_hang_and_may_be_suspected_again(tmp_path: Path) -> None:
    found, journal = dog(tmp_path)
    journal.at_ns = 12 * S
    found.stuck()
    for member in found.roster.members.values():
        member.fold(StepDone(t_ns=15 * S, rank=member.rank, step=1, start_ns=S, end_ns=15 * S))
    journal.at_ns = 16 * S
    found.stuck()
    assert told(tmp_path)[1:] == ["The run goes on after 14 s without a step."]
    journal.at_ns = 15 * S + 43 * S
    found.stuck()
    assert len(told(tmp_path)) == 3, "three of its longest steps later"


def test_a_rank_that_stands_still_while_others_go_on_is_told_of_once(tmp_path: Path) -> None:
    found, journal = dog(tmp_path, has_flight=False)
    for second in range(12, 40, 2):
        found.roster.members[0].fold(StepDone(t_ns=second * S, rank=0, step=second, start_ns=0, end_ns=S))
        journal.at_ns = second * S
        assert found.stuck() is None
    assert len(told(tmp_path)) == 1


def test_patience_that_is_over_ends_the_run_with_the_rank_and_where_it_stands(tmp_path: Path) -> None:
    answers = (stood(0, LIBRARY, OWN), stood(1, OWN), flew(0, 7), flew(1, 6))
    found, journal = dog(tmp_path, patience_s=12, answers=answers)
    journal.at_ns = 14 * S
    stuck = found.stuck()
    assert stuck is not None
    assert stuck[0] == 1
    assert "collective 7 of group 0, which it has not called; it stands in fetch(rank=1)" in stuck[1]


def test_without_a_flight_recorder_the_rank_that_is_not_in_torch_is_waited_for(tmp_path: Path) -> None:
    """gloo records no point-to-point calls: in a pipeline only the stacks tell."""
    found, journal = dog(
        tmp_path, ranks=3, answers=(stood(0, LIBRARY, OWN), stood(1, OWN), stood(2, LIBRARY)), has_flight=False
    )
    journal.at_ns = 12 * S
    found.stuck()
    (said,) = told(tmp_path)
    assert said.startswith("Looks like a hang of rank 1: no step has ended for 10 s; all others wait inside torch")


@pytest.mark.parametrize(
    "answers",
    [
        (stood(0, LIBRARY), stood(1, LIBRARY)),
        (stood(0, OWN), stood(1, OWN)),
        (stood(0, LIBRARY),),
        (stood(0, JAX), stood(1, JAX)),
    ],
    ids=["all wait", "none waits", "one is silent", "not torch"],
)
def test_stacks_that_tell_nobody_apart_name_nobody(tmp_path: Path, answers: tuple[StacksTaken, ...]) -> None:
    found, journal = dog(tmp_path, answers=answers, has_flight=False)
    journal.at_ns = 12 * S
    found.stuck()
    assert told(tmp_path) == ["Looks like a hang: no step has ended for 10 s."]


def test_a_profiler_that_does_not_stop_is_asked_about_and_not_ended(tmp_path: Path) -> None:
    found, journal = dog(tmp_path, patience_s=20, has_flight=False)
    for member in found.roster.members.values():
        member.fold(Phase(t_ns=2 * S, rank=member.rank, phase="stopping profiler"))
    journal.at_ns = 20 * S
    found.stuck()
    assert told(tmp_path) == []
    journal.at_ns = 23 * S
    assert found.stuck() is None
    assert len(told(tmp_path)) == 1


def test_a_process_that_drives_several_ranks_tells_of_those_that_its_other_threads_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    roster = Roster(tmp_path, 4)
    member = roster.members[0]
    member.told = StacksTaken(t_ns=0, rank=0, path="", threads=((LIBRARY, OWN), ("/w/a.py:3 wait(device=3)",)))
    assert standing(roster) == {3: "wait(device=3) (a.py:3)"}


def test_without_an_answer_what_faulthandler_wrote_is_kept(tmp_path: Path) -> None:
    found, journal = dog(tmp_path, has_flight=False, answers=(stood(0, OWN),))
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "rank1.txt"
    log.write_text("step 0\n")
    journal.at_ns = 12 * S
    dump = 'Thread 0x01 (most recent call first):\n  File "/home/me/train.py", line 5 in f\n'
    written = found.look

    def look() -> None:
        written()
        log.write_text("step 0\n" + dump)

    found.look = look
    found.stuck()
    kept = [e for e in Tail(tmp_path / "journal" / "supervisor.jsonl").read() if isinstance(e, StacksTaken)]
    assert [(e.rank, e.threads) for e in kept] == [(1, (("/home/me/train.py:5 f",),))]


def test_xla_is_given_flags_that_were_tried_and_no_others() -> None:
    flags = waiting_flags("0.10.2", 120)
    assert "warn_stuck_timeout_seconds=5" in flags
    assert "terminate_timeout_seconds=180" in flags
    assert waiting_flags("0.12.0", 120) == waiting_flags("", 120) == ""
