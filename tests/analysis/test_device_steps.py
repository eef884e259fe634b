"""When a device is at each step, worked by hand; and real traces whose hosts are ahead of their devices."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from drawn import run
from hypothesis import given
from hypothesis import strategies as st
from made_spans import Made, collective, copy, host, kernel, launch, window

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.critical_path import critical_paths
from meshscope.analysis.ddp import ddp
from meshscope.analysis.device_steps import ANNOTATIONS, LAUNCHES, MARKS, device_steps, step_numbers
from meshscope.analysis.findings import findings
from meshscope.analysis.hosts_ahead import ahead_words, hosts_ahead, untold
from meshscope.analysis.idle_shares import idle_shares
from meshscope.analysis.overlap import overlap
from meshscope.analysis.step_split import each_step
from meshscope.kinds import Kind
from meshscope.run import Run, open_traces
from meshscope.spans import Window


def bounds(made: Window) -> list[list[int]]:
    found: list[list[int]] = device_steps(made).step_ns.tolist()
    return found


def queued() -> list[Made]:
    """A host that launches a step each 10 while the device takes 30 for one, from 20 on."""
    return [kernel(20 + 30 * step, 50 + 30 * step, launch(10 * step + 1, 10 * step + 2)) for step in range(3)]


MARKED = [(0, 10), (10, 20), (20, 30)]


def test_a_step_lasts_from_its_first_work_to_that_of_the_next_where_the_host_is_ahead() -> None:
    earlier = kernel(-30, 20)
    made = window([earlier, *queued()], steps=MARKED)
    assert bounds(made) == [[20, 50], [50, 80], [80, 110]]
    assert (device_steps(made).by, device_steps(made).ahead_ns) == (LAUNCHES, 80)
    (rank,) = breakdown(run(windows=[made]))
    assert rank.per_step is not None
    assert (rank.per_step.span_ns, rank.per_step.compute_ns, rank.total.compute_ns) == (30, 30, 140)


def test_a_device_that_keeps_up_has_the_steps_of_its_host() -> None:
    spans = [kernel(at + 3, at + 8, launch(at + 1, at + 2)) for at in (0, 10, 20)]
    made = window(spans, steps=MARKED)
    assert bounds(made) == [list(one) for one in MARKED]
    assert ahead_words(run(windows=[made])) == ""


def test_waiting_for_a_host_belongs_to_the_step_that_the_host_is_in() -> None:
    """The device is through at 14 and gets its next work at 40, launched in the step that the host began at 10."""
    made = window([kernel(2, 14, launch(1, 2)), kernel(42, 50, launch(40, 41))], steps=[(0, 10), (10, 60)])
    assert bounds(made) == [[0, 14], [14, 60]]


def test_the_last_step_ends_with_all_that_was_launched_in_it() -> None:
    spans = [kernel(2, 30, launch(1, 2)), collective(25, 70, launch(3, 4))]
    assert bounds(window(spans, steps=[(0, 10)])) == [[0, 70]]


def test_a_late_all_reduce_ends_its_step_unless_the_next_has_begun() -> None:
    """It runs until 40; the next step's first work begins at 20, or at 60."""
    reduce = collective(8, 40, launch(3, 4))
    begun = window([kernel(2, 15, launch(1, 2)), reduce, kernel(20, 50, launch(11, 12))], steps=[(0, 10), (10, 50)])
    assert bounds(begun) == [[0, 20], [20, 50]]
    not_yet = window([kernel(2, 15, launch(1, 2)), reduce, kernel(60, 70, launch(55, 56))], steps=[(0, 10), (10, 70)])
    assert bounds(not_yet) == [[0, 40], [40, 70]]


def test_a_prefetch_on_another_stream_does_not_begin_the_step_that_launched_it() -> None:
    """The host of step 1 copies the batch of step 2 at once, while the device computes step 0."""
    prefetch = copy(12, 18, launch(11, 12), lane="stream 9")
    spans = [kernel(5, 60, launch(1, 2)), prefetch, kernel(60, 90, launch(13, 14))]
    assert bounds(window(spans, steps=[(0, 10), (10, 20)])) == [[0, 60], [60, 90]]


def test_work_without_its_launch_came_with_the_work_before_it_on_its_stream() -> None:
    first = [kernel(5 + at, 15 + at, launch(at, at + 1)) for at in range(0, 100, 10)]
    unseen = kernel(110, 120)
    made = window([*first, unseen, kernel(120, 130, launch(101, 102))], steps=[(0, 100), (100, 110)])
    assert bounds(made) == [[0, 120], [120, 130]]


def test_without_launches_annotations_of_the_device_tell_and_else_the_hosts_marks() -> None:
    annotated = [
        Made(Kind.OTHER, "stream 7", 20 + 30 * step, 45 + 30 * step, f"ProfilerStep#{step}") for step in (0, 1)
    ]
    work = [kernel(20, 50), kernel(50, 80)]
    told = device_steps(window([*annotated, *work], steps=[(0, 10), (10, 20)]))
    assert (told.step_ns.tolist(), told.by) == ([[20, 50], [50, 80]], ANNOTATIONS)
    bare = window(work, steps=[(0, 10), (10, 20)])
    assert (bounds(bare), device_steps(bare).by) == ([[0, 10], [10, 20]], MARKS)
    assert [what for what, _ in untold(run(windows=[bare]))] == ["device_steps"]


@pytest.mark.parametrize("about", [{"framework": "jax"}, {"device_kind": "cpu"}])
def test_where_host_and_device_are_one_clock_marks_are_the_steps(about: dict[str, str]) -> None:
    made = window(queued(), steps=MARKED, **about)
    assert (bounds(made), device_steps(made).by) == ([list(one) for one in MARKED], "")
    assert hosts_ahead(run(windows=[made])) == ()


def test_work_is_of_the_step_that_the_device_is_at_when_it_begins() -> None:
    made = window([kernel(-30, 20), *queued(), kernel(110, 120, launch(40, 41))], steps=MARKED)
    row = np.flatnonzero(made.spans.kind == Kind.COMPUTE)
    assert step_numbers(made, row).tolist() == [-1, 0, 1, 2, -1]


def test_a_host_that_is_ahead_is_said_to_be() -> None:
    made = window([kernel(-30, 20), *queued()], steps=MARKED)
    said = "steps are the device's, not between the host's marks: rank 0's host is ahead of it by up to 80 ns"
    assert ahead_words(run(windows=[made])) == said
    assert ahead_words(run(windows=[made, replace(made, rank=1)])).endswith(
        "2 hosts are ahead of them by up to 80 ns (rank 0)"
    )


def test_the_wait_for_the_first_batch_is_of_the_first_step() -> None:
    """Both steps load for 30 of their 50: the first before the device has had any work."""
    spans = [
        one
        for at in (0, 50)
        for one in (host(at, at + 30, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
                    kernel(at + 32, at + 50, launch(at + 30, at + 32)))
    ]  # fmt: skip
    (found,) = idle_shares(run(windows=[window(spans, steps=[(0, 50), (50, 100)])])).ranks
    assert (found.causes["data"], found.idle_ns) == (30, 32)
    assert sum(found.causes.values()) == found.idle_ns


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 30), st.booleans()), min_size=1, max_size=12),
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
)
def test_steps_of_a_device_neither_overlap_nor_begin_before_those_of_its_host(
    drawn: list[tuple[int, int, bool]], lengths: list[int]
) -> None:
    called, free, spans = 0, {True: 0, False: 0}, []
    for pause, length, is_main in drawn:
        called += pause + 1
        start = max(called, free[is_main])
        free[is_main] = start + length
        call = launch(called, called + 1)
        spans.append((kernel if is_main else collective)(start, start + length, call))
    edges = np.cumsum([0, *lengths]).tolist()
    made = window(spans, steps=list(pairwise(edges)))
    found = device_steps(made).step_ns
    assert (found >= made.step_ns).all()
    assert (np.diff(found.reshape(-1)) >= 0).all()


def opened(shared: Path, path: str) -> Run:
    (found,) = open_traces(sorted((shared / "traces").glob(path))).runs
    return found


def parts_ms(here: Run) -> list[float]:
    (rank,) = breakdown(here)
    step = rank.per_step
    assert step is not None
    times_ns = (step.span_ns, step.compute_ns, step.hidden_ns, step.exposed_ns, step.busy_ns)
    return [pytest.approx(ns / 1e6, abs=5e-4) for ns in times_ns]


@pytest.mark.shared
def test_a_device_two_steps_behind_has_its_own_steps_by_every_answer(shared: Path) -> None:
    """By hand from the file: the broadcasts that begin a step begin at 30.47, 49.45 and 68.44 ms, what comes before
    them at 30.457, 49.438 and 68.421, and the last work ends at 86.975. The host's marks end at 49.05."""
    here = opened(shared, "nccl-tl-resnet-actckpt-mi300/*checkpoint.json.gz")
    assert parts_ms(here) == [56.518 / 3, 19.2345 / 3, 11.9173 / 3, 35.2829 / 3, 56.2345 / 3]
    assert [step.span_ns for _, step in each_step(here)] == pytest.approx([18.981e6, 18.983e6, 18.554e6], abs=1000)
    (path,) = critical_paths(here)
    assert path.of_ns == pytest.approx(56.518e6, abs=1000)
    reduced = {one.name: (one.count, one.size_bytes) for one in overlap(here)}
    assert reduced["all_reduce"] == (6, 2 * (2_873_320 + 8_816_192))
    assert ahead_words(here).endswith("ahead of it by up to 37.9 ms")


@pytest.mark.shared
def test_the_exposed_tail_of_a_device_is_told_by_its_own_clock(shared: Path) -> None:
    here = opened(shared, "nccl-tl-resnet-actckpt-mi300/*checkpoint.json.gz")
    found = ddp(here)
    (rank,) = breakdown(here)
    assert found is not None
    assert rank.per_step is not None
    assert found.tail_ns < rank.per_step.exposed_ns
    assert found.computed_ns < rank.per_step.compute_ns
    (tail,) = [one for one in findings(here) if one.code == "exposed-tail"]
    assert tail.cost_frac == pytest.approx(found.tail_ns / rank.per_step.span_ns, rel=1e-6)
    assert "the last of 2 buckets (5.75 MB, 17.6 MB) is ready" in " ".join(tail.evidence)
    assert "compress" not in tail.fix


@pytest.mark.shared
def test_no_replay_of_one_stream_is_shorter_than_what_it_computes(shared: Path) -> None:
    """By hand: the work before the step ends at 14.635 ms. Its own is launched from 14.905 on, begins at 14.926 with
    the profiler's annotation on the device, and ends at 49.819."""
    here = opened(shared, "gpu-tl-qwen05b-h100/Qwen*.json.gz")
    span_ms, compute_ms, _, _, busy_ms = (one.expected for one in parts_ms(here))
    assert (span_ms, busy_ms) == (pytest.approx(49.819 - 14.635, abs=1e-3), pytest.approx(31.9, abs=0.05))
    (path,) = critical_paths(here)
    assert path.of_ns / 1e6 == pytest.approx(span_ms, abs=1e-3)
    assert path.what_ifs
    assert min(one.total_ns for one in path.what_ifs) >= compute_ms * 1e6


@pytest.mark.shared
def test_waits_for_batches_are_the_mean_over_the_steps_of_its_denominator(shared: Path) -> None:
    """By hand: idle and in the loader until the first copy is launched, in each of six steps; the device begins the
    first with its host at 0.156 ms and ends the last at 1065.709."""
    here = opened(shared, "gpu-kineto-resnet50-w0-2021/*.pt.trace.json.gz")
    (rank,) = idle_shares(here).ranks
    assert rank.span_ns / 1e6 == pytest.approx((1065.709 - 0.156) / 6, abs=1e-3)
    waits_ms = (68.69, 57.04, 60.59, 55.94, 61.95, 48.19)
    assert rank.causes["data"] / 1e6 == pytest.approx(sum(waits_ms) / 6, abs=0.01)
    (found,) = [one for one in findings(here) if one.code == "input-bound"]
    assert found.cost_ns == pytest.approx(rank.causes["data"])
    assert found.cost_frac == pytest.approx(rank.causes["data"] / rank.span_ns, rel=1e-6)
