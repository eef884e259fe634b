"""A run over a mesh of two axes: which ranks a collective, a sample and a parameter are of."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from meshscope.analysis.collectives import collectives
from meshscope.analysis.findings import findings
from meshscope.analysis.looked_for import FOUND, JUDGED, looked_for
from meshscope.analysis.steps import finished_steps
from meshscope.analysis.waiting import waiting
from meshscope.run import Gallery

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(600)]


def test_fsdp_with_tensor_parallelism_is_told_apart_by_axis(record: Callable) -> None:
    """Four ranks: 0 and 1, and 2 and 3, share layers; 0 and 2, and 1 and 3, shard what they have."""
    live = record("fsdp-tp", ranks=4, steps=12, workloads="", check_every=5)
    assert live.wait(300).outcome == "done", live.log()
    _, (run,) = Gallery(live.folder).at(time.time_ns())

    found = collectives(run)
    assert {one.group_size for one in found} == {2}
    assert {one.ranks for one in found} == {(0, 1), (2, 3), (0, 2), (1, 3)}
    assert waiting(run).matched == waiting(run).spans
    assert set(finished_steps(run).samples.tolist()) == {8.0}, "two slices of four, each counted once"

    held = {entry.rank: entry.replicas for entry in run.checks if entry.step == 5}
    assert {rank: list(own) for rank, own in held.items()} == {0: ["0,1"], 1: ["0,1"], 2: ["2,3"], 3: ["2,3"]}
    assert held[0] == held[1]
    assert {one.code: one.state for one in looked_for(run)}["ranks-drift"] == JUDGED
    assert [one.state for one in looked_for(run)].count(FOUND) == len(findings(run))
    assert {one.code for one in findings(run)} <= {"straggler"}, "cores that ranks share may make one late"
