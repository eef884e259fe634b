"""The critical path and replays of it: small runs worked by hand, and what must hold for all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn import run
from hypothesis import given
from hypothesis import strategies as st
from made_spans import Made, collective, host, kernel, launch, window

from meshscope.analysis.critical_path import CriticalPath, critical_paths, doubts
from meshscope.analysis.graph import Graph
from meshscope.analysis.graph_run import measure
from meshscope.analysis.replay import replay
from meshscope.analysis.waiting import world
from meshscope.kinds import Kind
from meshscope.run import Gallery, Run, open_traces
from meshscope.spans import Window

MS = 1_000_000


def path(*windows: Window) -> CriticalPath:
    (found,) = critical_paths(run(windows=windows))
    adds_up(found)
    assert found.error_ns == 0
    return found


def adds_up(found: CriticalPath) -> None:
    """Parts and ranks to the path, and of each part that has names these to the part."""
    assert sum(found.parts.values()) == found.of_ns == sum(found.by_rank.values())
    for part in ("compute", "communication", "communication_and_waiting", "copy"):
        assert sum(one.total_ns for one in found.works if one.part == part) == found.parts.get(part, 0)


def total(found: CriticalPath, name: str) -> int:
    (one,) = [one for one in found.what_ifs if one.name == name]
    assert one.saved_frac == pytest.approx((found.of_ns - one.total_ns) / found.of_ns)
    return one.total_ns


def test_a_host_that_never_waits_is_the_path_whatever_the_device_does() -> None:
    first, second = launch(0, 2), launch(3, 4)
    found = path(window([first, second, kernel(5, 20, first), kernel(20, 30, second)], steps=[(0, 40)]))
    assert found.parts == {"host": 40}


def test_a_host_that_synchronizes_waits_for_the_device() -> None:
    first, second = launch(0, 2), launch(3, 4)
    sync = host(6, 32, "cudaDeviceSynchronize")
    found = path(window([first, second, kernel(5, 20, first), kernel(20, 30, second), sync], steps=[(0, 35)]))
    # The launch takes 5 to reach the device, which computes for 25; the host is back 2 later and goes on for 3.
    assert found.parts == {"launch": 5, "compute": 25, "host": 5}
    assert total(found, "host_never_late") == 25


def test_device_work_behind_the_last_step_is_the_end() -> None:
    only = launch(1, 2)
    found = path(window([only, kernel(4, 50, only)], steps=[(0, 10)]))
    assert (found.of_ns, found.parts) == (50, {"host": 1, "launch": 3, "compute": 46})


def test_steps_begin_when_the_device_has_done_what_was_launched_before() -> None:
    """The host is a step ahead: its own marks hold 30 of an earlier step's work at the beginning."""
    earlier, unseen, own = launch(-20, -19), None, launch(5, 6)
    spans = [kernel(-10, 20, earlier), kernel(20, 30, unseen), kernel(30, 60, own)]
    found = path(window(spans, steps=[(0, 35)]))
    assert (found.of_ns, found.parts) == (30, {"compute": 30})


def test_a_path_covers_its_steps_where_launches_are_missing_everywhere() -> None:
    """Of six kernels one has its launch: what is before it need not have been launched before the steps."""
    own = launch(5, 6)
    unlinked = [kernel(at, at + 10) for at in (10, 30, 50, 85, 110)]
    found = path(window([*unlinked, kernel(70, 80, own)], steps=[(0, 60), (60, 120)]))
    assert (found.of_ns, found.steps) == (120, (0, 1))


def test_a_pageable_copy_holds_its_launch_call_up() -> None:
    first, blocking, last = launch(0, 1), launch(2, 22, "cudaMemcpyAsync"), launch(25, 26)
    copying = Made(Kind.COPY, "stream 7", 12, 20, "Memcpy DtoH (Device -> Pageable)", blocking)
    found = path(window([kernel(2, 12, first), copying, kernel(30, 40, last)], steps=[(0, 40)]))
    # 2 to reach the device, 10 computing, 8 copying, 2 until the call returns, 3 until the next, 5 to reach it, 10.
    assert found.parts == {"launch": 2 + 5, "compute": 20, "copy": 8, "host": 2 + 3}


THREE = (10, 10, 110)


def three(transfer: int = 20, *, late: tuple[int, ...] = THREE) -> list[Window]:
    """Ranks compute, meet, and compute 10 more; without launches, as devices show themselves."""
    end = max(late) + transfer
    return [
        window([kernel(0, ns), collective(ns, end), kernel(end, end + 10)], rank=rank, world=3, steps=[(0, end + 10)])
        for rank, ns in enumerate(late)
    ]


def test_the_path_goes_through_the_rank_that_came_last() -> None:
    found = path(*three())
    assert found.of_ns == 140
    assert found.parts == {"compute": 120, "communication": 20}
    assert found.by_rank[2] >= 110
    assert [(one.name, one.count, one.total_ns) for one in found.works] == [
        ("gemm", 2, 120),
        ("nccl:all_reduce", 1, 20),
    ]


def test_replays_change_one_thing_each() -> None:
    found = path(*three())
    assert total(found, "communication_twice_as_fast") == 130
    assert total(found, "communication_hidden") == 120
    assert total(found, "no_straggler") == 40


def test_without_the_late_one_of_two_ranks_the_step_is_that_of_the_other() -> None:
    found = path(*[replace(one, world=2) for one in three(late=(10, 110))])
    assert (found.of_ns, total(found, "no_straggler")) == (140, 40)


def test_without_a_straggler_there_is_none_to_take_away() -> None:
    found = path(*three(late=(10, 10, 10)))
    assert total(found, "no_straggler") == found.of_ns == 40


def test_clocks_that_are_apart_change_nothing() -> None:
    def meet_often(*apart_ns: int) -> list[Window]:
        made = []
        for rank, by_ns in enumerate(apart_ns):
            spans, at = [], 0
            for number, round_ns in enumerate((5_000_000, 9_000_000, 6_000_000, 8_000_000, 5_500_000, 7_000_000)):
                ns = 1_000_000 * (4 if (number + rank) % 3 == 0 else 1)
                spans += [kernel(at, at + ns), collective(at + ns, at + round_ns)]
                at += round_ns
            made.append(window(spans, rank=rank, world=3, steps=[(0, at)], host=f"h{rank}").shifted(by_ns))
        return made

    straight, apart = path(*meet_often(0, 0, 0)), path(*meet_often(0, 11_560_000_000, -7_000_000))
    assert straight.parts == apart.parts
    assert straight.parts["compute"] == 6 * 4_000_000


def held(goes_on_ns: int, *, operator: str = "aten::cat") -> list[Window]:
    """Rank 1 computes for 100 ms, rank 0 for 10, then they meet for 1. Both hosts launch that at 1 ms, and the next
    kernel only at ``goes_on_ns``, 20 ms before the end of the step; from 2 ms on they are in an operator."""
    made = []
    for rank, ns in enumerate((10 * MS, 100 * MS)):
        calls = [launch(at, at + 1_000) for at in (0, MS, goes_on_ns)]
        work = [
            kernel(0, ns, calls[0]),
            collective(ns, 101 * MS, calls[1]),
            kernel(goes_on_ns, goes_on_ns + MS, calls[2]),
        ]
        between = [host(2 * MS, goes_on_ns, operator)] if operator else []
        made.append(window([*work, *between], rank=rank, world=2, steps=[(0, goes_on_ns + 20 * MS)]))
    return made


def test_a_host_that_goes_on_when_a_collective_ends_waited_for_it() -> None:
    found = path(*held(101 * MS + 20_000))
    # Alone, rank 0 is through with its collective after 11 ms, and its host goes on 20 µs later.
    assert total(found, "no_straggler") == 11 * MS + 20_000 + 20 * MS


def test_where_a_host_may_have_waited_unseen_nothing_is_said_of_stragglers() -> None:
    found = path(*held(131 * MS))
    # 151 ms if rank 0's host was busy itself; if it waited until 101 of 131 ms, it is busy for 1 + 30 + 20.
    assert "between 51.0 ms and 151 ms instead of 151 ms" in dict(found.untold)["no_straggler"]
    assert "no_straggler" not in {one.name for one in found.what_ifs}


def test_a_host_outside_of_operators_is_taken_to_be_busy() -> None:
    assert total(path(*held(131 * MS, operator="")), "no_straggler") == 151 * MS


def test_communication_under_compute_is_not_on_the_path() -> None:
    ranks = [window([kernel(0, 100), collective(10, 60)], rank=rank, world=2, steps=[(0, 100)]) for rank in (0, 1)]
    found = path(*ranks)
    assert found.parts == {"compute": 100}
    assert total(found, "communication_hidden") == 100


def test_replays_of_two_ranks_whose_communication_is_partly_hidden() -> None:
    """Both meet at 50, when rank 1 comes, and transfer until 70; rank 0 computes beside that until 60, and both then
    compute for 10 more, once the collective has ended."""
    first = window([kernel(0, 60), collective(40, 70), kernel(70, 80)], rank=0, world=2, steps=[(0, 80)])
    second = window([kernel(0, 50), collective(50, 70), kernel(70, 80)], rank=1, world=2, steps=[(0, 80)])
    found = path(first, second)
    assert found.of_ns == 80
    # Twice as fast it ends at 60, when rank 0 has computed as well; hidden, the last kernel of rank 0 begins at 60 too.
    assert total(found, "communication_twice_as_fast") == 70
    assert total(found, "communication_hidden") == 70
    # By itself rank 0 transfers from 40 to 60 and ends at 70, rank 1 ends at 80: of two the earlier is the median.
    assert total(found, "no_straggler") == 70


def test_a_step_is_its_share_of_all_steps() -> None:
    steps = [(0, 20), (20, 40)]
    ranks = [window([kernel(0, 30), collective(30, 40)], rank=rank, world=2, steps=steps) for rank in (0, 1)]
    found = path(*ranks)
    assert found.steps == (0, 1)
    (said,) = [one for one in found.what_ifs if one.name == "communication_hidden"]
    assert (said.total_ns, said.step_ns) == (30, 15)


def test_a_kernel_that_waits_for_another_stream_follows_it() -> None:
    """The host had the stream wait for the all-reduce, whose end the second kernel follows."""
    first, reduce, wait, second = launch(0, 1), launch(1, 2), host(3, 4, "cudaStreamWaitEvent"), launch(5, 6)
    spans = [kernel(2, 10, first), collective(5, 40, reduce), wait, kernel(41, 50, second)]
    found = path(window([*spans, host(6, 50, "cudaDeviceSynchronize")], steps=[(0, 50)]))
    # The all-reduce takes 4 from its call at 1 to its start; the kernel follows it 1 later.
    assert found.parts == {"host": 1, "launch": 4, "communication_and_waiting": 35, "delay": 1, "compute": 9}


def test_a_kernel_that_waits_for_no_stream_follows_its_own_only() -> None:
    first, second, reduce = launch(0, 1), launch(2, 3), launch(6, 7)
    wait = host(4, 5, "cudaStreamWaitEvent")
    spans = [kernel(2, 10, first), kernel(41, 50, second), wait, collective(9, 40, reduce)]
    found = path(window([*spans, host(8, 50, "cudaDeviceSynchronize")], steps=[(0, 50)]))
    assert "communication_and_waiting" not in found.parts
    assert found.parts["delay"] == 31


def test_a_thread_of_a_cpu_rank_waits_where_it_does_nothing_until_a_collective_ends() -> None:
    call = Made(Kind.LAUNCH, "main", 10, 12, "c10d::allreduce_")
    spans = [
        kernel(0, 10, name="aten::mm", lane="main"), kernel(12, 30, name="aten::mm", lane="main"),
        collective(13, 50, call, lane="pt_gloo_runloop"), kernel(50, 58, name="aten::add_", lane="main"),
    ]  # fmt: skip
    found = path(window(spans, device_kind="cpu", steps=[(0, 60)]))
    assert found.parts == {"compute": 10 + 8, "launch": 3, "communication_and_waiting": 37, "host": 2}
    assert named(found) == {"nccl:all_reduce": (1, 37), "aten::mm": (1, 10), "aten::add_": (1, 8)}
    # Without communication the thread would have gone on at 30.
    assert total(found, "communication_hidden") == 40


def test_a_cpu_rank_that_does_not_wait_is_its_own_path() -> None:
    call = Made(Kind.LAUNCH, "main", 10, 12, "c10d::allreduce_")
    spans = [kernel(0, 10, lane="main"), kernel(12, 60, lane="main"), collective(13, 50, call, lane="pt_gloo_runloop")]
    assert path(window(spans, device_kind="cpu", steps=[(0, 60)])).parts == {"compute": 58, "host": 2}


def named(found: CriticalPath) -> dict[str, tuple[int, int]]:
    return {one.name: (one.count, one.total_ns) for one in found.works}


def on_cpu(*spans: tuple[str, int, int], waits: tuple[tuple[int, int], ...] = (), until: int = 100) -> Window:
    made = [kernel(start, end, name=name, lane="main") for name, start, end in spans]
    made += [Made(Kind.WAIT, "main", start, end, "c10d::wait_tensor") for start, end in waits]
    return window(made, device_kind="cpu", steps=[(0, until)])


def test_the_computing_of_a_cpu_rank_is_that_of_the_innermost_operators() -> None:
    """Two linear layers call addmm, the second of which is entered before the step begins and left after it ends."""
    found = path(
        on_cpu(
            ("aten::linear", 0, 40), ("aten::addmm", 5, 35), ("aten::copy_", 10, 12), ("aten::expand", 8, 8),
            ("aten::relu", 45, 50), ("aten::linear", 60, 120), ("aten::addmm", 70, 110),
        )
    )  # fmt: skip
    assert found.parts == {"compute": 40 + 5 + 40, "host": 15}
    assert named(found) == {
        "aten::addmm": (2, 5 + 23 + 30),
        "aten::linear": (2, 5 + 5 + 10),
        "aten::relu": (1, 5),
        "aten::copy_": (1, 2),
    }


def test_an_operator_that_a_wait_cuts_in_two_is_one_call() -> None:
    found = path(on_cpu(("aten::sum", 0, 20), ("aten::sum", 50, 70), ("aten::sum", 80, 90), waits=((20, 50),)))
    assert named(found) == {"aten::sum": (2, 50)}


def test_operators_that_overlap_without_nesting_are_all_counted() -> None:
    """No thread does that; a damaged trace may. From 14 to 15 only b runs, which its neighbours hide."""
    found = path(on_cpu(("a", 0, 10), ("b", 5, 15), ("c", 12, 14)))
    assert found.parts == {"compute": 15, "host": 85}
    assert named(found) == {"a": (1, 5), "b": (1, 7), "c": (1, 2), "": (0, 1)}


def test_what_of_an_operator_s_time_is_backward() -> None:
    """The second product is within autograd's evaluation of a function, in whose phase the relu behind it is not."""
    products = [kernel(at, at + 20, name="aten::mm", lane="main") for at in (0, 30)]
    engine = host(28, 55, "autograd::engine::evaluate_function: MmBackward0")
    here = window([*products, engine, kernel(60, 70, name="aten::relu", lane="main")], device_kind="cpu",
                  steps=[(0, 80)])  # fmt: skip
    assert {one.name: one.backward_ns for one in path(here).works} == {"aten::mm": 20, "aten::relu": 0}
    unmarked = on_cpu(("aten::mm", 0, 20))
    assert [one.backward_ns for one in path(unmarked).works] == [None]


def test_several_computing_threads_of_a_cpu_rank_are_not_put_in_an_order() -> None:
    made = run(windows=[window([kernel(0, 50, lane="a"), kernel(0, 50, lane="b")], device_kind="cpu")])
    assert critical_paths(made) == ()
    assert "several threads" in dict(doubts(made))["critical_path"]


def test_what_has_no_length_breaks_no_chain() -> None:
    spans = [kernel(0, 10), kernel(10, 30, name="long"), kernel(10, 10, name="none"), kernel(30, 30), kernel(30, 35)]
    found = path(window(spans, framework="jax"))
    assert found.parts == {"compute": 35}


def test_ranks_that_share_no_step_have_no_common_path() -> None:
    ranks = three()
    other = Window(**{**vars(ranks[1]), "steps": (7,)})
    made = run(windows=[ranks[0], other])
    assert critical_paths(made) == ()
    assert "share no complete step" in dict(doubts(made))["critical_path"]


def test_waiting_that_is_not_known_is_not_taken_for_communication() -> None:
    made = run(windows=three()[:1])
    (found,) = critical_paths(made)
    assert set(found.parts) == {"compute", "communication_and_waiting"}
    assert {one.name for one in found.what_ifs} == {"communication_hidden"}
    untold = dict(doubts(made))
    assert "waiting is part of their time" in untold["what_if.communication_twice_as_fast"]
    assert untold["what_if.no_straggler"] == "only one rank can be seen"


def test_an_answer_says_where_waiting_that_is_not_known_is_in_it() -> None:
    """Rank 0 of two alone: its collective is communication and waiting in one."""
    work, reduce, last = launch(0, 1), launch(2, 3), launch(95, 96)
    spans = [kernel(2, 12, work), collective(12, 90, reduce), kernel(97, 100, last)]
    spans.append(host(92, 94, "cudaDeviceSynchronize"))
    (found,) = critical_paths(run(windows=[window(spans, world=2, steps=[(0, 100)])]))
    said = {one.name: one.caveat for one in found.what_ifs}
    of = "1 of 1 collective span has no counterpart on every rank, so waiting is part of their time"
    assert said == {
        "communication_hidden": f"{of}, and goes with it",
        "host_never_late": f"{of}, and stays, also where a late host caused it",
    }
    assert not any(one.caveat for one in path(*three()).what_ifs)


@pytest.mark.parametrize(("cores", "is_shared"), [(5, True), (6, False)])
def test_where_cores_are_shared_answers_on_communication_say_what_the_scheduler_does(
    cores: int, is_shared: bool
) -> None:
    (found,) = critical_paths(run(windows=three(), device_kind="cpu", ranks=3, cores=cores))
    said = {one.name for one in found.what_ifs if "where CPU ranks share cores" in one.caveat}
    assert said == ({"communication_hidden", "communication_twice_as_fast"} if is_shared else set())


@st.composite
def meeting_ranks(draw: st.DrawFn) -> tuple[list[Window], list[int]]:
    """Two or three ranks that compute, communicate and launch at random; and how long each computes on its stream."""
    count = draw(st.integers(2, 3))
    has_host = draw(st.booleans())
    length = st.integers(0, 9)
    spans: list[list[Made]] = [[] for _ in range(count)]
    free, met, called, computed = [0] * count, [0] * count, [0] * count, [0] * count
    for _ in range(draw(st.integers(1, 6))):
        arrivals, launches = [], []
        for rank in range(count):
            for make in range(draw(st.integers(0, 2)) + 1):
                is_last = not make
                called[rank] += draw(length)
                by = launch(called[rank], called[rank] + 1) if has_host and draw(st.booleans()) else None
                if is_last:
                    arrivals.append(
                        max(met[rank], free[rank] if draw(st.booleans()) else 0, called[rank]) + draw(length)
                    )
                    launches.append(by)
                else:
                    start, ns = max(free[rank], called[rank]) + draw(length), draw(length)
                    spans[rank].append(kernel(start, start + ns, by))
                    free[rank], computed[rank] = start + ns, computed[rank] + ns
        end = max(arrivals) + 1 + draw(length)
        for rank in range(count):
            spans[rank].append(collective(arrivals[rank], end, launches[rank]))
            met[rank] = end
    stop = max(*free, *met, *called) + 5
    made = [window(some, rank=rank, world=count, steps=[(0, stop)]) for rank, some in enumerate(spans)]
    return made, computed


def graph_of(here: Run) -> Graph:
    found = measure(here.windows, world(here)).graph
    assert found is not None
    return found


@given(meeting_ranks())
def test_a_replay_with_nothing_changed_gives_back_every_time(drawn: tuple[list[Window], list[int]]) -> None:
    graph = graph_of(run(windows=drawn[0]))
    assert (replay(graph) == graph.time_ns).all()
    assert graph.weight_ns.min() >= 0


@given(meeting_ranks(), st.data())
def test_making_things_faster_makes_nothing_later(drawn: tuple[list[Window], list[int]], data: st.DataObject) -> None:
    graph = graph_of(run(windows=drawn[0]))
    keeps = data.draw(st.lists(st.integers(0, 4), min_size=len(graph), max_size=len(graph)))
    faster = replay(graph, graph.weight_ns * np.array(keeps, dtype=np.int64) // 4)
    assert (faster <= graph.time_ns).all()
    slower = replay(graph, graph.weight_ns * (np.array(keeps, dtype=np.int64) + 4) // 4)
    assert (slower >= graph.time_ns).all()


@given(meeting_ranks())
def test_no_replay_is_shorter_than_the_compute_of_a_stream_or_longer_than_the_steps(
    drawn: tuple[list[Window], list[int]],
) -> None:
    windows, computed = drawn
    (found,) = critical_paths(run(windows=windows))
    adds_up(found)
    assert min(found.parts.values()) > 0
    # Work without a launch was launched before the steps: the path begins when the device has done it.
    before = int(windows[0].step_ns[0, 1]) - found.of_ns
    for one in found.what_ifs:
        assert one.total_ns <= found.of_ns
        least = sorted(computed)[(len(computed) - 1) // 2] if one.name == "no_straggler" else max(computed)
        assert one.total_ns >= least - before


def test_the_bundled_strategies_have_a_path_that_adds_up(root: Path) -> None:
    gallery = Gallery(root / "recordings" / "tiny-4-cpu-ranks")
    end = gallery.end_unix_ns
    assert end is not None
    for here in gallery.at(end)[1]:
        (found,) = critical_paths(here)
        adds_up(found)
        assert found.error_ns == 0
        if here.experiment.framework == "torch":
            operators = [one for one in found.works if one.part == "compute"]
            assert all(one.name.startswith("aten::") for one in operators[:3])
            assert sum(one.total_ns for one in operators) > found.of_ns / 10
        if here.experiment.ranks > 1:
            names = {one.name for one in found.what_ifs}
            assert names >= {"communication_twice_as_fast", "communication_hidden", "no_straggler"}


@pytest.mark.shared
def test_the_path_of_eight_real_ranks_is_the_host_of_those_that_come_last(shared: Path) -> None:
    (here,) = open_traces([shared / "traces" / "mr-megatron-tp8-a100"]).runs
    found = path(*here.windows)
    assert set(found.by_rank) <= {0, 6}
    assert found.parts["host"] > 0.9 * found.of_ns
    assert total(found, "host_never_late") < 0.5 * found.of_ns


@pytest.mark.shared
def test_the_rank_that_sleeps_is_the_path_of_the_others(shared: Path) -> None:
    (here,) = open_traces([shared / "traces" / "mr-torchrec-sst4-a2a"]).runs
    found = path(*here.windows)
    assert set(found.by_rank) == {2}
    # The others' hosts sit in aten::cat until 100 ms after the late rank's collective has ended.
    why = dict(found.untold)["no_straggler"]
    assert "launches nothing for 1.11 s" in why
    assert "between 366 ms and 1.37 s instead of 3.30 s" in why
