"""A recording of somebody else's job: when it takes windows, when it is over, and how it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from meshscope.capture.attach import doors, profiler_server
from meshscope.capture.attach.attached import Attached
from meshscope.capture.attach.planning import Attach, by_job, experiment, from_plan, plan
from meshscope.capture.attach.targets import Target
from meshscope.errors import InputError, MissingPackageError
from meshscope.recording.control import Ask
from meshscope.recording.entries import Ended, Log, RankEnded, RankStarted
from meshscope.recording.journal import Tail


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(window, rank) of every window that was taken; each writes a file at once."""
    found: list[tuple[int, int]] = []

    def take(target: Target, order: doors.Order, recording: Path, *_: object) -> None:
        found.append((order.number, target.rank))
        (recording / "traces" / f"rank{target.rank}-window{order.number}.json").touch()

    monkeypatch.setattr(doors, "take", take)
    return found


def server(pid: int, rank: int = 0) -> Target:
    return Target(door="worker server", framework="torch", pid=pid, rank=rank, world=2, address="localhost:1", job="a")


def opened(folder: Path, *targets: Target, **asked: float) -> Attached:
    request = Attach(targets=targets, out=str(folder), **asked)  # type: ignore[arg-type]
    planned = plan(request, [])
    job = Attached(folder / "attached", experiment(planned.runs[0], targets), targets, from_plan(planned), {})
    job.open()
    return job


def until(holds: Callable[[], object], patience_s: float = 10) -> None:
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def looked(job: Attached, *asks: Ask) -> None:
    job.look(asks)
    until(lambda: not job._is_busy)


def entries(folder: Path) -> list[object]:
    return list(Tail(folder / "attached" / "journal" / "supervisor.jsonl").read())


def test_as_many_windows_as_asked_for_are_taken_and_then_it_is_over(sleeper, taken, tmp_path: Path) -> None:
    job = opened(tmp_path, server(sleeper.pid), server(sleeper.pid, 1), every_s=0.01, most=2)
    assert not job.is_over
    looked(job)
    time.sleep(0.02)
    looked(job)
    assert sorted(taken) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert job.is_over
    assert job.close(is_left=False).outcome == "done"
    assert sleeper.poll() is None, "it goes on"
    said = entries(tmp_path)
    assert [e.text for e in said if isinstance(e, Log)][-1] == "detached: the job goes on (2 windows taken)"
    assert len([e for e in said if isinstance(e, RankStarted)]) == 2


def test_without_a_cycle_a_key_brings_each_window_after_the_first(sleeper, taken, tmp_path: Path) -> None:
    job = opened(tmp_path, server(sleeper.pid), every_s=0)
    looked(job)
    looked(job)
    assert taken == [(1, 0)]
    looked(job, Ask(what="profile"))
    assert taken == [(1, 0), (2, 0)]
    assert not job.is_over
    job.close(is_left=True)


def test_a_job_that_ends_ends_its_recording(sleeper, taken, tmp_path: Path) -> None:
    job = opened(tmp_path, server(sleeper.pid))
    looked(job)
    sleeper.kill()
    sleeper.wait()
    looked(job)
    assert job.is_over
    assert job.close(is_left=False).outcome == "done"
    said = entries(tmp_path)
    assert [e.rank for e in said if isinstance(e, RankEnded)] == [0]
    assert any(isinstance(e, Log) and e.text == "the job has ended" for e in said)


def test_a_job_that_gave_no_trace_is_a_failure_unless_somebody_left(
    sleeper, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doors, "take", lambda *_: None)
    job = opened(tmp_path / "a", server(sleeper.pid), most=1)
    looked(job)
    ended = job.close(is_left=False)
    assert (ended.outcome, ended.why) == ("failed", "no process gave a trace; the log says why")
    left = opened(tmp_path / "b", server(sleeper.pid), most=1)
    assert left.close(is_left=True).outcome == "done"
    assert isinstance(entries(tmp_path / "b")[-1], Ended)


def test_ranks_of_one_job_are_one_recording_and_those_that_nothing_tells_are_given_out() -> None:
    told = (server(1, 1), server(2, 0))
    assert [target.pid for target in by_job(told)["attached"]] == [2, 1]
    untold = (server(9, -1), server(8, -1))
    assert [(target.pid, target.rank) for target in by_job(untold)["attached"]] == [(8, 0), (9, 1)]
    apart = Target(door="profiler server", framework="jax", pid=3, address="localhost:9", job="jax 3")
    assert list(by_job((*told, apart))) == ["attached a", "attached jax 3"]


def test_a_plan_says_how_many_ranks_there_are_where_anything_tells(tmp_path: Path) -> None:
    found = plan(Attach(targets=(server(1, 1),), out=str(tmp_path / "x")), ["a note"])
    assert (found.runs[0].ranks, found.notes) == (2, ["a note"])
    assert from_plan(found).targets == (server(1, 1),)
    with pytest.raises(InputError, match="A window of 0 s"):
        plan(Attach(targets=(server(1),), window_s=0.0), [])


def test_a_profiler_server_is_refused_without_the_package_that_speaks_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler_server.importlib.util, "find_spec", lambda name: None)
    target = Target(door="profiler server", framework="jax", address="localhost:9999", job="jax")
    with pytest.raises(MissingPackageError, match="needs grpcio") as refused:
        plan(Attach(targets=(target,)), [])
    assert "meshscope[attach]" in refused.value.hint
