"""Following a run in plain lines: each change once, and the end once."""

from __future__ import annotations

from pathlib import Path

from meshscope.cli.headless import Follower
from meshscope.experiment import Experiment
from meshscope.recording import layout
from meshscope.recording.entries import Ended, Phase, StepDone
from meshscope.recording.journal import Journal
from meshscope.run import Gallery

T0 = 1_700_000_000_000_000_000
HEAD = Experiment(
    t0_unix_ns=T0,
    strategy="ddp",
    title="DDP",
    framework="torch",
    ranks=1,
    device_kind="cpu",
    model="tiny",
    planned_steps=3,
)


def _lines(folder: Path, times_ns: list[int]) -> list[str]:
    said: list[str] = []
    follower = Follower(Gallery(folder), said.append)
    for now_ns in times_ns:
        follower.look(T0 + now_ns)
    return said


def test_each_change_is_told_once_and_the_end_once(tmp_path: Path) -> None:
    layout.create(tmp_path, HEAD)
    journal = Journal(tmp_path, "rank0", t0_unix_ns=T0)
    journal.append(Phase(t_ns=10, rank=0, phase="training"))
    journal.append(StepDone(t_ns=20, rank=0, step=0, start_ns=10, end_ns=20))
    journal.append(Ended(t_ns=30, outcome="done"))
    said = _lines(tmp_path, [15, 16, 25, 35, 40, 50, 60])
    assert [line.split()[1] for line in said] == ["training", "done"]


def test_a_reason_from_a_rank_cannot_steer_the_terminal(tmp_path: Path) -> None:
    layout.create(tmp_path, HEAD)
    Journal(tmp_path, "supervisor", t0_unix_ns=T0).append(Ended(t_ns=5, outcome="failed", why="\x1b]0;owned\x07"))
    (line,) = _lines(tmp_path, [10])
    assert "\x1b" not in line
    assert "failed" in line
