"""Recordings of a run's nodes: one run on one clock, and nothing that is not of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawn import run, steps, windows

from meshscope.analysis.joining import joined
from meshscope.analysis.steps import steps as steps_of
from meshscope.recording.entries import Ended, RankStarted, Sampled
from meshscope.run import Run

MS, S = 1_000_000, 1_000_000_000
AHEAD_NS = 11_560_000_000
T0 = 1_700_000_000 * S

PICTURE = """
    {0} step        aaaaaaaaaabbbbbbbbbbcccccccccc
    {0} compute     ####......####......####......
    {0} all_reduce  ....####......####......####..
    {1} step        aaaaaaaaaabbbbbbbbbbcccccccccc
    {1} compute     ####......####......####......
    {1} all_reduce  ....####......####......####..
"""


def node(
    number: int, *, ahead_ns: int = 0, is_traced: bool = False, outcome: str = "done", why: str = "", **about: Any
) -> Run:
    """Ranks 2·number and the next; a node starts its recording ``number`` seconds after the first one."""
    first = 2 * number
    durations = [100.0] * 14
    mine = [
        replace_rank(entry, first + entry.rank, by_ns=-number * S) for entry in steps(durations, ranks=2, samples=4)
    ]
    started = [
        RankStarted(t_ns=1, rank=first + at, device=at, device_name="H100", device_kind="gpu", pid=1) for at in (0, 1)
    ]
    sensed = [
        Sampled(t_ns=S, device=name, values={"utilization_frac": 0.5}) for name in ("host", "gpu 0", f"rank {first}")
    ]
    known = {"ranks": 4, "nodes": 2, "node_rank": number, "rendezvous": "alpha:1", "host": ("alpha", "beta")[number]}
    drawn = [
        replace(window.shifted(2 * S - number * S), source=f"traces/rank{window.rank}")
        for window in (windows(PICTURE.format(first, first + 1), world=4) if is_traced else ())
    ]
    made = run(
        [*mine, *started, *sensed, Ended(t_ns=30 * S, outcome=outcome, why=why)],
        windows=drawn, t0_unix_ns=T0 + number * S + ahead_ns, global_batch=16, **known | about,
    )  # fmt: skip
    return replace(made, path=f"node{number}/ddp")


def replace_rank(entry: Any, rank: int, by_ns: int) -> Any:
    import msgspec

    moved = {name: getattr(entry, name) + by_ns for name in ("t_ns", "start_ns", "end_ns")}
    return msgspec.structs.replace(entry, rank=rank, **moved)


@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("ahead_ns", [0, AHEAD_NS, -AHEAD_NS])
def test_nodes_are_one_run_on_the_clock_of_the_first(ahead_ns: int, is_traced: bool) -> None:
    found = joined([node(0, is_traced=is_traced), node(1, ahead_ns=ahead_ns, is_traced=is_traced)])
    (whole,) = found.runs
    assert np.unique(whole.steps.rank).tolist() == [0, 1, 2, 3]
    for rank in (2, 3):
        assert whole.steps.of(rank).end_ns.tolist() == whole.steps.of(rank - 2).end_ns.tolist()
    # 4 samples on each of 4 ranks; the second rank of each node ends a millisecond after the first.
    assert steps_of(whole).samples_per_s == pytest.approx(16 / 0.101)
    (note,) = found.notes
    of = "collectives" if is_traced else "steps alone"
    said = "0.000 s ahead of" if not ahead_ns else f"11.560 s {'ahead of' if ahead_ns > 0 else 'behind'}"
    assert said in note
    assert of in note
    assert "beta" in note
    assert whole.logs[0].text == note


def test_devices_of_nodes_are_told_apart() -> None:
    (whole,) = joined([node(1), node(0)]).runs
    assert set(whole.samples.devices) == {"host alpha", "host beta", "gpu 0", "gpu 2", "rank 0", "rank 2"}
    assert [started.device for started in sorted(whole.ranks, key=lambda started: started.rank)] == [0, 1, 2, 3]
    assert whole.experiment.hosts == ["alpha", "beta"]
    assert (whole.experiment.host, whole.experiment.nodes, whole.experiment.cores) == ("alpha, beta", 1, 4)


def test_hosts_of_one_name_are_numbered() -> None:
    (whole,) = joined([node(0, host="vm"), node(1, host="vm")]).runs
    assert whole.experiment.host == "vm (node 0), vm (node 1)"


@pytest.mark.parametrize(
    "about",
    [{"rendezvous": "alpha:2"}, {"strategy": "fsdp"}, {"nodes": 1}, {"t0_unix_ns": T0 + 7200 * S},
     {"options": {"lr": 2}}, {"model": "125m"}],
)  # fmt: skip
def test_what_is_of_another_run_stays_apart(about: dict[str, Any]) -> None:
    t0 = about.pop("t0_unix_ns", None)
    other = node(1, **about)
    if t0 is not None:
        import msgspec

        other = replace(other, experiment=msgspec.structs.replace(other.experiment, t0_unix_ns=t0))
    found = joined([node(0), other])
    assert len(found.runs) == 2
    assert not found.notes


def test_what_failed_on_one_node_is_told_before_what_another_lost() -> None:
    lost = node(0, outcome="failed", why="node 0 has lost node 1; rank 0: closed by peer")
    (whole,) = joined([lost, node(1, outcome="failed", why="node 1: rank 2: ValueError: nan")]).runs
    assert whole.ended is not None
    assert whole.ended.why.startswith("node 1: rank 2: ValueError: nan; node 0 has lost")
    (whole,) = joined([node(0), node(1, outcome="stopped", why="asked")]).runs
    assert whole.ended is not None
    assert whole.ended.outcome == "stopped"


def test_some_of_the_nodes_say_that_others_are_missing() -> None:
    found = joined([node(0, nodes=3, ranks=6), node(1, nodes=3, ranks=6)])
    assert found.notes[-1] == "ddp: 2 of 3 nodes are here, without the ranks of others."
    assert found.runs[0].experiment.nodes == 3
