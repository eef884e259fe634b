"""Recordings of a run's nodes on the command line: one run in every command that reads, and no others with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from meshscope.cli import main, nodes
from meshscope.cli.opening import nodes_in
from meshscope.errors import InputError
from meshscope.experiment import Experiment, Plan, PlannedRun
from meshscope.recording import layout
from meshscope.recording.entries import Ended, StepDone
from meshscope.recording.journal import Journal

T0, S, MS = 1_790_000_000_000_000_000, 1_000_000_000, 1_000_000


def written(folder: Path, node: int, rendezvous: str = "alpha:1", ahead_s: float = 0.0) -> Path:
    """A node's folder: rank ``node`` of two, with 20 steps of 100 ms."""
    t0 = T0 + round(ahead_s * S)
    run = PlannedRun(strategy="ddp", title="ddp", framework="torch", folder="ddp", ranks=2, rendezvous=rendezvous)
    layout.create_plan(folder, Plan(t0_unix_ns=t0, runs=[run], ranks=2, model="tiny"))
    head = Experiment(
        t0_unix_ns=t0, strategy="ddp", title="ddp", framework="torch", ranks=2, device_kind="cpu", model="tiny",
        planned_steps=20, global_batch=8, nodes=2, node_rank=node, rendezvous=rendezvous, host=("alpha", "beta")[node],
    )  # fmt: skip
    layout.create(folder / "ddp", head)
    journal = Journal(folder / "ddp", f"rank{node}", t0_unix_ns=t0)
    for step in range(20):
        start = S + step * 100 * MS
        done = StepDone(t_ns=start + 100 * MS, rank=node, step=step, start_ns=start, end_ns=start + 100 * MS, samples=4)
        journal.append(done)
    journal.close()
    for place in (folder / "ddp", folder):
        supervisor = Journal(place, "supervisor", t0_unix_ns=t0)
        supervisor.append(Ended(t_ns=4 * S, outcome="done"))
        supervisor.close()
    return folder


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    return written(tmp_path / "run" / "n0", 0), written(tmp_path / "run" / "n1", 1, ahead_s=11.56)


def _said(capsys: pytest.CaptureFixture[str], *line: object) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in line])
    out, err = capsys.readouterr()
    return left.value.code, out, err


def test_analyze_joins_them_whether_named_or_in_one_folder(
    both: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for paths in (both, both[::-1], (both[0].parent,)):
        code, out, err = _said(capsys, "analyze", "--json", *paths)
        (recording,) = json.loads(out)["recordings"]
        assert code == 0
        assert recording["hosts"] == ["alpha", "beta"]
        # 4 samples on each of two ranks in 100 ms.
        assert recording["steps"]["samples_per_s"] == pytest.approx(80)
        assert "the clock of beta is 11.560 s ahead of that of the first node" in err


def test_a_node_by_itself_says_that_it_is_one_of_several(
    both: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = _said(capsys, "analyze", both[1])
    assert "only ranks 1 of 2 are here: samples/s are theirs alone" in " ".join(out.split())
    _, out, _ = _said(capsys, "analyze", *both)
    assert "are here: samples/s are theirs alone" not in " ".join(out.split())
    assert "2 CPU ranks on alpha and beta" in " ".join(out.split())


def test_replay_and_open_without_a_terminal_show_one_run(
    both: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for line in (("replay", "--headless", *both), ("open", "--headless", both[0].parent)):
        code, out, _ = _said(capsys, *line)
        assert code == 0
        assert "2 CPU ranks on alpha and beta, done, step 20 of 20" in " ".join(out.split())


def test_a_reel_of_nodes_shows_what_both_knew_at_a_time(both: tuple[Path, Path]) -> None:
    reel = nodes.reel(both)
    assert (reel.start_unix_ns, reel.end_unix_ns) == (T0, T0 + 4 * S), "the clock of the other is 11.56 s ahead"
    _, (early,) = reel.at(T0 + round(1.55 * S))
    assert {rank: len(early.steps.of(rank)) for rank in (0, 1)} == {0: 5, 1: 5}
    _, (whole,) = reel.at(T0 + 4 * S)
    assert whole.experiment.hosts == ["alpha", "beta"]
    assert whole.ended is not None
    assert reel.stretches == ((("ddp", T0, T0 + 4 * S)),)


def test_what_is_not_of_one_run_is_refused(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a", 0), written(tmp_path / "b", 1, rendezvous="beta:9")
    with pytest.raises(InputError, match="are not of one run"):
        nodes.reel((one, other))
    with pytest.raises(InputError, match="is no recording"):
        nodes.reel((one, tmp_path / "empty"))


def test_a_folder_of_other_things_stays_what_it_is(tmp_path: Path) -> None:
    assert nodes_in(tmp_path) == (tmp_path,)
    folder = written(tmp_path / "a", 0)
    assert nodes_in(folder) == (folder,)
    head = layout.read_experiment(folder / "ddp")
    alone = tmp_path / "of others" / "c"
    layout.create(alone, structs.replace(head, nodes=1))
    assert nodes_in(alone.parent) == (alone.parent,)
