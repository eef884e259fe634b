"""Idle time charged to its causes, worked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn import run
from hypothesis import given
from hypothesis import strategies as st
from made_spans import Made, collective, copy, host, kernel, launch, window

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.idle import Idle, doubts, idle
from meshscope.kinds import ANNOTATION, Kind
from meshscope.run import open_traces


def of(*spans: Made, **about: object) -> Idle:
    (found,) = idle(run(windows=[window(spans, **about)]))  # type: ignore[arg-type]
    return found


def test_a_gap_is_cut_at_the_launch_of_what_ends_it() -> None:
    first, second = launch(0, 5), launch(150, 160)
    found = of(first, kernel(10, 100, first), host(110, 145, "aten::mm"), second, kernel(170, 200, second))
    # From 100 the device is idle: 10 in nothing, 35 in an operator, 5 in nothing, 10 in the call, 10 until it starts.
    assert found.causes == {"python": 15, "operators": 35, "launch": 10, "queued": 10}
    assert (found.idle_ns, found.gaps, found.late_starts) == (70, 1, 1)
    assert found.host_late_ns == 60


def test_work_that_was_launched_in_time_was_queued() -> None:
    first, second = launch(0, 5), launch(6, 9)
    found = of(first, second, kernel(10, 100, first), kernel(102, 200, second))
    assert found.causes == {"queued": 2}
    assert found.late_starts == 0


@pytest.mark.parametrize(
    ("name", "rule", "cause"),
    [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", ANNOTATION, "data"),
        ("cudaStreamSynchronize", "", "sync"),
        ("hipMemcpyWithStream", "", "sync"),
        ("aten::item", "", "sync"),
        ("cudaMalloc", "", "allocation"),
        ("Optimizer.step#AdamW.step", ANNOTATION, "optimizer"),
        ("aten::addmm", "", "operators"),
        ("ProfilerHook", ANNOTATION, "python"),
    ],
)
def test_what_the_host_did_meanwhile_is_the_cause(name: str, rule: str, cause: str) -> None:
    first, second = launch(0, 5), launch(200, 210)
    found = of(first, kernel(10, 100, first), host(90, 200, name, rule=rule), second, kernel(210, 220, second))
    assert found.causes == {cause: 100, "launch": 10}


def test_a_copy_that_blocks_in_the_optimizer_is_a_synchronization() -> None:
    first, second = launch(0, 5), launch(200, 200)
    found = of(first, kernel(10, 100, first), host(90, 200, "Optimizer.step#SGD.step", rule=ANNOTATION),
               host(120, 150, "cudaStreamSynchronize"), second, kernel(200, 220, second))  # fmt: skip
    assert found.causes == {"optimizer": 70, "sync": 30}


def test_another_thread_that_launches_tells_what_the_launching_one_does_not() -> None:
    """The backward pass launches from a thread of its own, which does not exist while the loss is being prepared."""
    first, second = launch(0, 5), launch(200, 200, lane="autograd")
    found = of(first, kernel(10, 100, first), host(120, 150, "aten::cross_entropy"), second, kernel(200, 220, second))
    assert found.causes == {"operators": 30, "python": 70}


def test_a_thread_that_launches_nothing_is_no_cause() -> None:
    first, second = launch(0, 5), launch(200, 200)
    loader = host(100, 200, "aten::stack", lane="pin memory")
    assert of(first, kernel(10, 100, first), loader, second, kernel(200, 220, second)).causes == {"python": 100}


def test_without_its_launch_the_cause_of_a_gap_is_unknown() -> None:
    first = launch(0, 5)
    found = of(first, kernel(10, 100, first), kernel(150, 200))
    assert found.causes == {"unknown": 50}
    assert found.unknown_ns == 50


def test_a_launch_after_its_kernel_tells_nothing() -> None:
    first, second = launch(0, 5), launch(180, 190)
    assert of(first, kernel(10, 100, first), second, kernel(150, 200, second)).causes == {"unknown": 50}


def test_kernels_waiting_for_a_collective_are_told_from_a_host_that_is_late_as_well() -> None:
    first, reduce, ready, late = launch(0, 5), launch(5, 6), launch(7, 8), launch(350, 360)
    found = of(
        first, reduce, ready, late, kernel(10, 100, first), collective(50, 200, reduce), kernel(200, 300, ready),
        copy(300, 370, launch(8, 9)), kernel(370, 400, late),
    )  # fmt: skip
    # 100–200 waits for the collective. 300–370 copies: until 350 the next kernel had not been launched.
    assert found.waits == {"collective": 100, "copy": 20}
    assert found.late_beside_ns == 50
    assert found.idle_ns == 0


def test_where_no_launch_was_recorded_nothing_is_guessed() -> None:
    found = of(kernel(0, 10), kernel(20, 30))
    assert (found.causes, found.idle_ns) == ({}, 10)
    assert doubts([found])[0][0] == "idle"


def test_devices_without_a_host_are_not_explained() -> None:
    found = of(kernel(0, 10), kernel(20, 30), framework="jax")
    assert found.causes == {}
    assert "not what the host did" in doubts([found])[0][1]


def test_a_cpu_rank_tells_what_its_thread_did_between_operators() -> None:
    main = {"lane": "main"}
    found = of(
        kernel(0, 10, **main), host(10, 40, "enumerate(DataLoader)#x", rule=ANNOTATION), kernel(50, 60, **main),
        Made(Kind.WAIT, "main", 60, 70, "c10d::wait"), host(70, 75, "autograd::engine::evaluate_function: X"),
        kernel(80, 90, **main), device_kind="cpu",
    )  # fmt: skip
    assert found.causes == {"data": 30, "python": 15, "wait": 10, "operators": 5}
    assert found.idle_ns == 60


def test_work_without_length_leaves_nothing_to_be_idle_in() -> None:
    found = of(kernel(0, 0, launch(0, 0)), kernel(50, 50, launch(1, 1)))
    assert (found.span_ns, found.idle_ns, found.causes) == (0, 0, {})


def test_the_longest_gap_is_told_with_what_ended_it() -> None:
    first, second = launch(0, 5), launch(6, 9)
    gap = of(first, second, kernel(10, 100, first), kernel(140, 200, second, "late one")).longest
    assert gap is not None
    assert (gap.start_ns, gap.end_ns, gap.next_name, gap.cause) == (100, 140, "late one", "queued")


times = st.integers(0, 300)


@st.composite
def ranks(draw: st.DrawFn) -> list[Made]:
    found: list[Made] = []
    for _ in range(draw(st.integers(1, 8))):
        called, start = draw(times), draw(times)
        by = launch(called, called + draw(st.integers(0, 20)), lane=draw(st.sampled_from(["main", "autograd"])))
        make = draw(st.sampled_from([kernel, copy, collective]))
        found += [by, make(start, start + draw(st.integers(0, 40)), draw(st.sampled_from([by, None])))]
    for _ in range(draw(st.integers(0, 5))):
        start = draw(times)
        name = draw(st.sampled_from(["aten::mm", "cudaFree", "enumerate(DataLoader)#x", "cudaDeviceSynchronize"]))
        found.append(host(start, start + draw(st.integers(0, 90)), name))
    return found


@given(ranks())
def test_causes_add_up_to_the_idle_time_and_pauses_to_what_was_not_computed(spans: list[Made]) -> None:
    here = run(windows=[window(spans)])
    (found,) = idle(here)
    (whole,) = breakdown(here)
    assert found.idle_ns == whole.total.idle_ns == sum(found.causes.values())
    assert min(found.causes.values(), default=1) > 0
    beside = sum(found.waits.values()) + found.late_beside_ns + found.unseen_beside_ns
    assert beside == whole.total.busy_ns - whole.total.compute_ns


@pytest.mark.shared
def test_every_gpu_rank_of_the_corpus_adds_up(shared: Path) -> None:
    explained = 0
    for case in ("mr-megatron-tp8-a100", "nccl-hta-nccl-data", "gpu-kineto-resnet50-w0-2021", "mr-torchrec-sst4-a2a"):
        for here in open_traces([shared / "traces" / case]).runs:
            totals = {rank.rank: rank.total for rank in breakdown(here)}
            for found in idle(here):
                assert sum(found.causes.values()) == found.idle_ns == totals[found.rank].idle_ns
                explained += 1
    assert explained == 14


@pytest.mark.shared
def test_a_loader_without_workers_is_found(shared: Path) -> None:
    (here,) = open_traces([shared / "traces" / "gpu-kineto-resnet50-w0-2021"]).runs
    (found,) = idle(here)
    assert max(found.causes, key=lambda cause: found.causes[cause]) == "data"
    assert found.causes["data"] > 0.7 * found.idle_ns
