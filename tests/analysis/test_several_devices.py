"""One process that drives several devices is one rank; each device's own time is told beside it."""

from __future__ import annotations

import json
from pathlib import Path

from explained import asked, parts, value
from made_traces import Event, kernel, step, write_kineto

from meshscope.analysis.several_devices import DeviceBreakdown, several_devices
from meshscope.reports.analysis_json import analysis_json
from meshscope.reports.run_text import run_lines
from meshscope.run import Run
from meshscope.run.loading import load
from meshscope.run.opening import folded

NCCL = "ncclDevKernel_AllReduce_Sum_f32"


def run_of(folder: Path, events: list[Event]) -> Run:
    loading = load([write_kineto(folder / "rank0.json", events)])
    (run,), _ = folded(loading)
    return run


def in_turns(devices: int) -> list[Event]:
    """Every device computes 10 µs of 40, one after another, twice."""
    return [kernel("gemm", 40 * turn + 10 * d, 10, device=d) for turn in range(2) for d in range(devices)]


def test_each_device_idles_though_their_union_never_does(tmp_path: Path) -> None:
    run = run_of(tmp_path, in_turns(4))
    found = several_devices(run)
    assert [(one.rank, one.device) for one in found] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert {(one.total.span_ns, one.total.compute_ns, one.total.idle_ns) for one in found} == {(50_000, 20_000, 30_000)}
    (rank,) = json.loads(analysis_json([run]))["recordings"][0]["ranks"]
    assert (rank["breakdown"]["span_ns"], rank["breakdown"]["idle_ns"]) == (80_000, 0)
    assert [one["breakdown"]["idle_ns"] for one in rank["devices"]] == [30_000] * 4


def test_what_one_device_computes_hides_nothing_of_another(tmp_path: Path) -> None:
    run = run_of(tmp_path, [kernel("gemm", 0, 100, device=0), kernel(NCCL, 20, 30, device=1)])
    first, second = several_devices(run)
    assert isinstance(first, DeviceBreakdown)
    assert (first.total.compute_ns, first.total.collective_ns) == (100_000, 0)
    assert (second.total.collective_ns, second.total.hidden_ns, second.total.exposed_ns) == (30_000, 0, 30_000)


def test_it_is_said_that_the_ranks_numbers_are_of_all_devices(tmp_path: Path) -> None:
    run = run_of(tmp_path, in_turns(2))
    said = dict(run.windows[0].cannot_say)
    assert "devices 0–1" in said["idle_ns"]
    assert "devices 0–1" in said["hidden_ns"]
    assert any("one process drives several devices" in line for line in run_lines(run))


def test_a_rank_with_one_device_says_nothing_of_devices(tmp_path: Path) -> None:
    run = run_of(tmp_path, [step(1, 0, 100), kernel("gemm", 0, 10, device=3), kernel(NCCL, 5, 10, stream=9, device=3)])
    assert several_devices(run) == ()
    assert "idle_ns" not in dict(run.windows[0].cannot_say)
    assert "devices" not in json.loads(analysis_json([run]))["recordings"][0]["ranks"][0]


def test_what_each_device_did_can_be_explained(tmp_path: Path) -> None:
    run = run_of(tmp_path, [kernel("gemm", 0, 100, device=0), kernel(NCCL, 20, 30, device=1)])
    first, second = asked(run, "by_device.exposed")
    assert (first.of, value(first)) == ("device 0 of rank 0", 0)
    assert (second.of, value(second), second.json) == (
        "device 1 of rank 0", 30_000, "ranks[rank=0].devices[1].breakdown.exposed_ns")  # fmt: skip
    assert list(parts(second).values()) == [30_000, 0]
    assert second.evidence is not None
    assert [one.name for one in second.evidence.largest] == [NCCL]
