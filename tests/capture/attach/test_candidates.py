"""Which door a process has, and what is said of one that has none."""

from __future__ import annotations

import pytest

from meshscope.capture.attach.candidates import Candidate, is_launcher
from meshscope.capture.attach.targets import targets
from meshscope.errors import InputError

OPEN = Candidate(pid=10, frameworks=("torch",), command="python train.py", rank=1, world=2, has_daemon=True, launcher=9)
PEER = Candidate(pid=11, frameworks=("torch",), command="python train.py", rank=0, world=2, has_daemon=True, launcher=9)
CLOSED = Candidate(pid=12, frameworks=("torch",), command="python old.py", ports=(29500,))
SERVED = Candidate(pid=13, frameworks=("jax",), command="python jax_job.py", ports=(9999,))
SILENT = Candidate(pid=14, frameworks=("jax",), command="python jax_job.py")
UNSURE = Candidate(pid=15, frameworks=("jax",), command="python jax_job.py", ports=(9999, 8476))
OURS = Candidate(pid=16, frameworks=("torch",), command="python -m …", has_daemon=True, recording="/runs/a/ddp")
ALL = (OPEN, PEER, CLOSED, SERVED, SILENT, UNSURE, OURS)


def test_a_process_has_the_door_that_it_left_open_itself() -> None:
    assert [one.door for one in ALL] == ["kineto", "kineto", "", "profiler server", "", "", ""]


@pytest.mark.parametrize(
    ("pid", "why", "what"),
    [
        (12, "started without KINETO_USE_DAEMON=1", "Start it with KINETO_USE_DAEMON=1"),
        (14, "it has no profiler server", "Call jax.profiler.start_server(9999)"),
        (15, "listens on ports 9999, 8476", "meshscope attach localhost:PORT"),
        (16, "recorded by meshscope already", "meshscope watch /runs/a/ddp"),
    ],
)
def test_a_process_without_a_door_is_refused_with_the_reason_and_what_to_do(pid: int, why: str, what: str) -> None:
    with pytest.raises(InputError, match="cannot be attached to") as refused:
        targets([str(pid)], ALL, is_all=False)
    assert why in refused.value.message
    assert what in refused.value.hint


def test_the_number_of_a_launcher_stands_for_its_ranks() -> None:
    found, _ = targets(["9"], ALL, is_all=False)
    assert sorted((target.pid, target.rank, target.door) for target in found) == [(10, 1, "kineto"), (11, 0, "kineto")]
    assert {target.job for target in found} == {"torch 9"}, "they are one recording"


def test_all_takes_those_with_a_door_and_says_why_not_the_others() -> None:
    found, notes = targets([], ALL, is_all=True)
    assert [target.pid for target in found] == [10, 11, 13]
    assert found[2].address == "localhost:9999"
    assert len(notes) == 4
    assert notes[0].startswith("pid 12 is left out: started without KINETO_USE_DAEMON=1.")


def test_what_is_named_twice_is_attached_to_once() -> None:
    found, _ = targets(["10", "9"], ALL, is_all=False)
    assert len(found) == 2


@pytest.mark.parametrize("word", ["train.py", "localhost:", ":80", "localhost:70000", "a:b"])
def test_what_is_neither_a_number_nor_an_address_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="neither a process id nor HOST:PORT"):
        targets([word], ALL, is_all=False)


def test_a_process_that_is_none_of_torch_or_jax_is_refused() -> None:
    with pytest.raises(InputError, match="Process 1 has not loaded torch or JAX"):
        targets(["1"], ALL, is_all=False)


@pytest.mark.parametrize(
    ("line", "launches"),
    [
        (["/usr/bin/python3", "/usr/bin/torchrun", "train.py"], True),
        (["python", "-m", "torch.distributed.run", "train.py"], True),
        (["python", "/lib/torch/distributed/run.py", "train.py"], True),
        (["python", "train.py", "--name", "torchrunner"], False),
    ],
)
def test_torchrun_is_told_from_the_ranks_it_starts(line: list[str], launches: bool) -> None:
    assert is_launcher(line) is launches
