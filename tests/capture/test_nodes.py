"""One run on several machines: which of them this is, what each starts, and whom a failure is put on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from meshscope.capture import commands, frameworks, launch, machine, peers, windows
from meshscope.capture.calls import waits_in
from meshscope.capture.frameworks import Framework
from meshscope.capture.nodes import Nodes, first_host, nodes
from meshscope.capture.request import Request, Windows, from_plain
from meshscope.capture.roster import Roster
from meshscope.errors import InputError
from meshscope.experiment import Experiment, Plan
from meshscope.recording.entries import Ended, FlightWritten, RankEnded, StepDone

TOY = str(Path(__file__).parent / "toy")
SECOND = Nodes(2, 1, "gpu01:29500")
STEP = {
    "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "77", "SLURM_NNODES": "2", "SLURM_NODEID": "1", "SLURM_LOCALID": "0",
    "SLURM_JOB_NODELIST": "gpu[07-08]",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _on_cpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(frameworks, "probe", lambda names: {name: Framework(version="1") for name in names})
    monkeypatch.setattr(frameworks, "missing", lambda _: ())
    monkeypatch.setattr(machine, "cores", lambda: tuple(range(8)))
    monkeypatch.chdir(tmp_path)


JAX_NODES = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_NUM_CPU_DEVICES")


def plan(*strategies: str, **asked: Any) -> Plan:
    return launch.plan(Request(strategies=strategies, **{"workloads": TOY, "nodes": SECOND} | asked))


def test_the_options_say_which_node_this_is() -> None:
    assert nodes(2, 1, "gpu01:29500", environ={}) == SECOND
    assert nodes(environ={}) == nodes(1, environ={}) == Nodes()
    assert nodes(2, 1, "[fe80::1]:5", environ=STEP).rendezvous == "[fe80::1]:5"


@pytest.mark.parametrize(
    "given", [(2, None, "a:1"), (2, 0, None), (None, 0, None), (2, 2, "a:1"), (2, 0, "a"), (2, 0, "a:x"), (2, 0, ":1"),
              (2, 0, "a:70000")],
)  # fmt: skip
def test_what_is_incomplete_or_makes_no_sense_is_refused(given: tuple[Any, ...]) -> None:
    with pytest.raises(InputError) as refused:
        nodes(*given, environ={})
    assert refused.value.hint


def test_slurm_says_it_in_a_task_of_srun() -> None:
    assert nodes(environ=STEP) == Nodes(2, 1, f"gpu07:{20_000 + 77 * 31 % 20_000}")
    assert nodes(environ=STEP | {"SLURM_NNODES": "1"}) == Nodes()
    in_the_script_of_sbatch = {name: value for name, value in STEP.items() if name != "SLURM_STEP_ID"}
    assert nodes(environ=in_the_script_of_sbatch) == Nodes()
    with pytest.raises(InputError, match="several tasks"):
        nodes(environ=STEP | {"SLURM_LOCALID": "1"})


@pytest.mark.parametrize(
    ("names", "first"),
    [("gpu[01-04,07],login", "gpu01"), ("alpha,beta", "alpha"), ("a[3,5-6]-ib", "a3-ib"), ("one", "one"), ("", "")],
)
def test_the_first_host_of_a_list(names: str, first: str) -> None:
    assert first_host(names) == first


def test_ranks_are_those_of_all_nodes_and_each_starts_its_share() -> None:
    made = plan("toy", ranks=4, batch_each=(8, 16))
    assert [run.rendezvous for run in made.runs] == ["gpu01:29500", "gpu01:29501"]
    assert made.notes[0] == "This is node 1 of 2; they meet at gpu01:29500, gpu01:29501."
    asked = from_plain(made.request)
    head = commands.experiment(asked, made.runs[1])
    assert (head.ranks, head.nodes, head.node_rank, list(head.own_ranks)) == (4, 2, 1, [2, 3])
    assert head.threads_per_rank == 4, "two ranks share the eight cores of this node"
    started = commands.command(asked, made.runs[1], Path("r"))
    wanted = {
        "--nnodes=2",
        "--node-rank=1",
        "--rdzv-backend=static",
        "--rdzv-endpoint=gpu01:29501",
        "--nproc-per-node=2",
    }
    assert wanted <= set(started.line)
    assert "--standalone" not in started.line
    alone = plan("toy", ranks=4, nodes=Nodes())
    line = commands.command(from_plain(alone.request), alone.runs[0], Path("r")).line
    assert {"--standalone", "--nproc-per-node=4"} <= set(line)


def test_a_jax_process_on_each_node_brings_its_share_of_devices_to_one_place() -> None:
    made = plan("jax-toy", ranks=4)
    started = commands.command(from_plain(made.request), made.runs[0], Path("r"))
    told = {name: started.environment.get(name) for name in JAX_NODES}
    assert told == dict(zip(JAX_NODES, ("gpu01:29500", "2", "1", "2"), strict=True))
    alone = plan("jax-toy", ranks=4, nodes=Nodes())
    assert "JAX_PROCESS_ID" not in commands.command(from_plain(alone.request), alone.runs[0], Path("r")).environment


@pytest.mark.parametrize(
    ("strategy", "asked", "why"),
    [("toy", {"ranks": 3, "batch": 3}, "do not divide among 2 nodes"), ("jax-toy", {"ranks": 3, "batch": 3}, "divide"),
     ("toy-single", {}, "one device"), ("toy", {"ranks": 2, "is_until_stable": True}, "--until-stable")],
)  # fmt: skip
def test_what_nodes_cannot_do_together_is_refused(strategy: str, asked: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why) as refused:
        plan(strategy, **asked)
    assert refused.value.hint


def test_all_windows_of_several_nodes_stand_before_the_run_starts() -> None:
    def bounds(policy: Windows, planned: int) -> list[tuple[int, int]]:
        return [(window.first_step, window.end_step) for window in windows.ahead(policy, planned)]

    assert bounds(Windows(), 60) == [(5, 6), (36, 37)]
    assert bounds(Windows(), 12) == [(5, 6)]
    assert bounds(Windows(wait=8), 40) == [(5, 6), (15, 16), (25, 26), (35, 36)]
    assert bounds(Windows(active=0), 60) == []


def _here(count: int = 2) -> Experiment:
    return Experiment(
        t0_unix_ns=0, strategy="ddp", title="", framework="torch", ranks=2 * count, device_kind="cpu", model="tiny",
        nodes=count, node_rank=0, rendezvous="alpha:1",
    )  # fmt: skip


def _roster(tmp_path: Path, waits: dict[int, str]) -> Roster:
    roster = Roster(tmp_path, 2)
    for rank, where in waits.items():
        roster.members[rank].fold(StepDone(t_ns=5, rank=rank, step=11, start_ns=1, end_ns=5))
        roster.members[rank].fold(FlightWritten(t_ns=9, rank=rank, path="", newest={"0": 57}, waits_in=where))
        roster.members[rank].process = object()  # type: ignore[assignment]  # there is one
    return roster


@pytest.fixture
def _each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Roster, "leading", property(lambda self: list(self.members.values())))


@pytest.mark.usefixtures("_each_alone")
def test_ranks_that_all_wait_in_one_collective_wait_for_another_node(tmp_path: Path) -> None:
    where = "all_reduce 57 of group 0"
    roster = _roster(tmp_path, {0: where, 1: where})
    assert peers.waited_for(_here(), roster) == (
        "every rank of node 0 waits in all_reduce 57 of group 0, in step 12, and so for node 1: "
        "a rank there hangs, or the network between them is gone"
    )
    assert "for one of nodes 1–2:" in peers.waited_for(_here(3), roster)
    apart = _roster(tmp_path, {0: where, 1: ""})
    assert peers.waited_for(_here(), apart) == ""
    assert peers.waited_for(_here(1), roster) == ""


def _failed(tmp_path: Path, *whys: str) -> str:
    roster = Roster(tmp_path, len(whys))
    for rank, why in enumerate(whys):
        roster.members[rank].fold(RankEnded(t_ns=1, rank=rank, exit_code=1, why=why))
    return peers.named(_here(), roster, Ended(t_ns=0, outcome="failed", rank=0, why=f"rank 0: {whys[0]}")).why


def test_ranks_that_only_lost_a_peer_put_it_on_the_other_node(tmp_path: Path) -> None:
    lost = "in all_reduce 57 of group 0: RuntimeError: Connection closed by peer [10.77.0.2]:41234"
    assert _failed(tmp_path, lost, lost) == f"node 0 has lost node 1; rank 0: {lost}"
    assert _failed(tmp_path, "ValueError: nan", lost) == "node 0: rank 0: ValueError: nan"


def test_the_oldest_call_that_is_not_done_is_the_one_that_a_rank_waits_in() -> None:
    def call(name: str, number: int, *, is_done: bool) -> dict[str, Any]:
        about = {"is_p2p": False, "collective_seq_id": number, "process_group": ("0", "default_pg")}
        return {"profiling_name": f"gloo:{name}", "retired": is_done, **about}

    calls = [call("all_reduce", 56, is_done=True), call("all_gather", 57, is_done=False)]
    assert waits_in({"entries": [*calls, call("all_reduce", 58, is_done=False)]}) == "all_gather 57 of group 0"
    assert waits_in({"entries": calls[:1]}) == waits_in({}) == ""
