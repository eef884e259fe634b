"""What both reports say of causes."""

from __future__ import annotations

import json
from dataclasses import fields

import msgspec
from drawn import run
from hypothesis import given
from hypothesis import strategies as st
from made_spans import Made, collective, host, kernel, launch, window

from meshscope.analysis.ddp import Ddp
from meshscope.analysis.fsdp import Fsdp, Module
from meshscope.analysis.xla_checks import Called, Xla, XlaCollective
from meshscope.kinds import ANNOTATION, FRAME, Kind
from meshscope.reports.analysis_json import analysis
from meshscope.reports.columns import WIDTH
from meshscope.reports.strategy_json import OVER
from meshscope.reports.text import report
from meshscope.reports.why_json import why_json
from meshscope.reports.why_text import why_lines
from meshscope.run import Run
from meshscope.spans import Window

MS = 1_000_000


def starved() -> Run:
    """A device that waits for its batch, twice."""
    spans = []
    for at in (0, 100 * MS):
        call = launch(at, at + 1000)
        second = launch(at + 90 * MS, at + 90 * MS + 1000)
        spans += [
            kernel(at + MS, at + 10 * MS, call, "a gemm"),
            host(at + 10 * MS, at + 90 * MS, "enumerate(DataLoader)#x", rule=ANNOTATION),
            kernel(at + 91 * MS, at + 100 * MS, second, "\x1b[31mhostile"),
        ]
    return run(windows=[window(spans, steps=[(0, 100 * MS), (100 * MS, 200 * MS)])], ranks=1)


def said(text: str) -> str:
    """Without the line breaks that are there for the terminal."""
    return " ".join(text.split())


def test_idle_time_is_told_with_its_cause_in_both() -> None:
    (recording,) = analysis([starved()])["recordings"]
    (idle,) = recording["idle"]
    assert idle["idle_ns"] == sum(idle["causes"].values())
    assert max(idle["causes"], key=lambda cause: idle["causes"][cause]) == "data"
    assert recording["launches"][0]["bound"] == "input"
    text = said(report([starved()], encoding="utf-8"))
    assert "the host loads data" in text
    assert "input-bound: the device waits for the next batch 80.4 % of 199 ms" in text


def test_the_longest_kernels_are_told_in_both_and_steer_no_terminal() -> None:
    (recording,) = analysis([starved()])["recordings"]
    assert [one["name"] for one in recording["operations"]["top"]] == ["\x1b[31mhostile", "a gemm"]
    assert "\x1b" not in report([starved()], encoding="utf-8")


def late_rank() -> Run:
    """Two healthy ranks wait for a third that computes 100 ms longer."""
    made = []
    for rank, ns in enumerate((10 * MS, 10 * MS, 110 * MS)):
        spans = [kernel(0, ns), collective(ns, 130 * MS), kernel(130 * MS, 140 * MS)]
        made.append(window(spans, rank=rank, world=3, steps=[(0, 140 * MS)]))
    return run(windows=made, ranks=3)


def test_the_critical_path_is_told_with_what_would_shorten_it() -> None:
    (recording,) = analysis([late_rank()])["recordings"]
    (path,) = recording["critical_path"]
    assert path["parts"] == {"compute": 120 * MS, "communication": 20 * MS}
    answers = {one["name"]: one["step_ns"] for one in path["what_ifs"]}
    assert answers == {
        "communication_twice_as_fast": 130 * MS, "communication_hidden": 120 * MS, "no_straggler": 40 * MS,
    }  # fmt: skip
    text = said(report([late_rank()], encoding="utf-8"))
    assert "critical path of step 0, 140 ms: compute 85.7 %, communication 14.3 %; through rank 2" in text
    assert "longest on it: gemm 85.7 %, nccl:all_reduce 14.3 %" in text
    assert (
        "a step of 140 ms would take: no rank late (the median rank by itself, at its own host's pace) 40.0 ms "
        "(−71.4 %)"
    ) in text


def test_buckets_are_told_in_both() -> None:
    calls = [launch(at, at + 1, lane="autograd") for at in (MS, 21 * MS, 30 * MS)]
    spans = [
        host(0, MS, "DistributedDataParallel.forward", rule=ANNOTATION), kernel(MS, 2 * MS, launch(1, 2)),
        host(MS, 40 * MS, "autograd::engine::evaluate_function: MmBackward0", lane="autograd"),
        kernel(2 * MS, 40 * MS, calls[0]),
        collective(22 * MS, 30 * MS, calls[1], size_bytes=8_000_000),
        collective(40 * MS, 45 * MS, calls[2], size_bytes=4_000_000),
    ]  # fmt: skip
    here = run(windows=[window(spans, steps=[(0, 50 * MS)])], ranks=1)
    (recording,) = analysis([here])["recordings"]
    assert recording["ddp"]["tail_ns"] == 5 * MS
    text = said(report([here], encoding="utf-8"))
    assert recording["ddp"]["over"]["tail_ns"] == "mean backward pass of a rank"
    assert "ddp: 2 buckets of 4.00 MB to 8.00 MB" in text
    # The device is busy from 1 to 45 ms; the collective under compute counts once in phases and twice in work added up.
    assert (
        "in all that is 11.4 % of the 44.0 ms from first to last device event of the traces, added up over ranks"
    ) in text
    assert "phases, of 44.0 ms in which devices are busy (work at the same time counts once): forward 2.3 %" in text
    assert "of 52.0 ms of device work, added up: DistributedDataParallel.forward" in text


def test_every_number_of_a_strategy_says_what_it_is_over() -> None:
    kinds = {"ddp": {"": Ddp}, "fsdp": {"": Fsdp, "modules.": Module},
             "xla": {"": Xla, "collectives.": XlaCollective, "collectives.longest.": Called}}  # fmt: skip
    words = {"ranks", "modules", "module", "what", "collectives", "command_names", "name", "told_by", "longest",
             "is_scattered"}  # fmt: skip
    for name, some in kinds.items():
        numbers = {
            f"{at}{field.name}" for at, kind in some.items() for field in fields(kind) if field.name not in words
        }
        assert set(OVER[name]) == numbers


def test_totals_are_told_from_means_in_the_text() -> None:
    """Of a search of 4 ms in each of two steps 8 in all."""
    spans = []
    for at in (0, 50 * MS):
        call = launch(at + 30 * MS, at + 30 * MS + 1, lane="autograd")
        spans += [
            host(at, at + MS, "DistributedDataParallel.forward", rule=ANNOTATION),
            kernel(at + MS, at + 2 * MS, launch(at + 1, at + 2)),
            host(at + MS, at + 40 * MS, "autograd::engine::evaluate_function: MmBackward0", lane="autograd"),
            kernel(at + 2 * MS, at + 40 * MS, launch(at + 2 * MS, at + 3 * MS, lane="autograd")),
            collective(at + 40 * MS, at + 45 * MS, call, size_bytes=4_000_000),
            host(at + 41 * MS, at + 45 * MS, "torch.distributed.ddp.reducer::search_unused_parameters"),
        ]
    here = run(windows=[window(spans, steps=[(0, 50 * MS), (50 * MS, 100 * MS)])], ranks=1)
    text = " ".join(line.strip() for line in why_lines(here))
    assert "unused parameters were searched for 2 times (8.00 ms in all)" in text


def test_what_is_not_known_is_listed() -> None:
    made = run(windows=[window([kernel(0, 9), kernel(20, 30)])], ranks=1)
    (recording,) = analysis([made])["recordings"]
    assert recording["idle"] == []
    assert {"idle", "phases"} <= {doubt["what"] for doubt in recording["cannot_say"]}


@st.composite
def anything(draw: st.DrawFn) -> Window:
    """Spans of every kind with names that mean something, in no sensible order."""
    names = [
        "aten::mm", "cudaLaunchKernel", "cudaStreamWaitEvent", "cudaDeviceSynchronize", "enumerate(DataLoader)#x",
        "Optimizer.step#SGD.step", "DistributedDataParallel.forward", "FSDP::all_gather (layers.0)", "nn.Module: A_0",
        "FSDP::post_backward_reduce", "autograd::engine::evaluate_function: X", "all-gather-start.1", "command_buffer",
        "torch.distributed.ddp.reducer::search_unused_parameters", "",
    ]  # fmt: skip
    made: list[Made] = []
    for _ in range(draw(st.integers(1, 14))):
        start = draw(st.integers(0, 60))
        kind = draw(st.sampled_from(list(Kind)))
        made.append(
            Made(
                kind=kind,
                lane=draw(st.sampled_from(["main", "autograd", "stream 7", "stream 20"])),
                start_ns=start,
                end_ns=start + draw(st.integers(0, 30)),
                name=draw(st.sampled_from(names)),
                launch=draw(st.sampled_from([None, *made])),
                collective=draw(st.sampled_from(["all_reduce", "broadcast", ""])) if kind == Kind.COLLECTIVE else "",
                size_bytes=draw(st.integers(-1, 3)),
                rule=draw(st.sampled_from(["", ANNOTATION, FRAME])),
            )
        )
    return window(
        made,
        rank=draw(st.integers(0, 1)),
        steps=draw(st.sampled_from([(), ((0, 40),), ((0, 30), (30, 70))])),
        framework=draw(st.sampled_from(["torch", "jax"])),
        device_kind=draw(st.sampled_from(["gpu", "cpu", "tpu"])),
        world=draw(st.integers(0, 2)),
    )


@given(st.lists(anything(), min_size=1, max_size=2))
def test_whatever_a_trace_holds_parts_add_up_and_every_number_is_one(windows: list[Window]) -> None:
    here = run(windows=sorted(windows, key=lambda one: one.rank))
    causes, doubts = why_json(here)
    for one in causes["idle"]:
        assert sum(one["causes"].values()) == one["idle_ns"] >= 0
    for one in causes["critical_path"]:
        assert sum(one["parts"].values()) == sum(one["by_rank"].values()) == one["of_ns"] > 0
        assert one["error_ns"] == 0
        assert all(what["total_ns"] <= one["of_ns"] for what in one["what_ifs"])
    assert all(what and why for what, why in doubts)
    msgspec.json.encode(causes)
    assert "NaN" not in json.dumps(causes)
    assert all(len(line) <= WIDTH for line in why_lines(here))
