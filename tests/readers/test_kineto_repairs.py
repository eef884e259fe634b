"""Times that cannot be so: what is dropped or mended, why, and that everything else keeps its exact numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_traces import UNIX_NS, Event, kernel, memory, span, step, write_kineto

from meshscope.analysis.breakdown import Breakdown, measure
from meshscope.readers import kineto_repairs, read, time_bounds
from meshscope.spans import Kind, Window

DAY_US = 86_400e6
YEAR_US = 365 * DAY_US

# Compute 0–10 and 20–30, a collective 5–15, a copy 40–42: everything else in a test is damage beside it.
GOOD: list[Event] = [
    kernel("gemm", 1000, 10, correlation=1),
    kernel("ncclDevKernel_AllReduce_Sum_f32", 1005, 10, stream=20, correlation=2),
    kernel("gemm", 1020, 10, correlation=3),
    span("Memcpy DtoH", 1040, 2, cat="gpu_memcpy", tid=9, stream=9, device=0, correlation=4),
]
GOOD_NS = Breakdown(
    span_ns=42_000, compute_ns=20_000, collective_ns=10_000, copy_ns=2_000, hidden_ns=5_000, exposed_ns=5_000,
    busy_ns=27_000, idle_ns=15_000,
)  # fmt: skip


def one(path: Path, events: list[Event], **around: object) -> Window:
    (window,) = read(write_kineto(path / "t.json", events, **around))  # type: ignore[arg-type]
    return window


def figures(window: Window) -> Breakdown:
    return measure(window).total


def without(event: Event, key: str) -> Event:
    return {name: value for name, value in event.items() if name != key}


DROPPED = {
    "no start": (without(kernel("k", 0, 1), "ts"), time_bounds.NO_TIME),
    "a word as the start": (kernel("k", 0, 1) | {"ts": "soon"}, time_bounds.NO_TIME),
    "null as the start": (kernel("k", 0, 1) | {"ts": None}, time_bounds.NO_TIME),
    "a start beyond int64": (kernel("k", 1e17, 1), time_bounds.OUT_OF_RANGE),
    "nanoseconds for the start": (kernel("k", UNIX_NS, 1), time_bounds.RATHER_NANOSECONDS),
    "a start long before all time": (kernel("k", -1e17, 1), time_bounds.TOO_EARLY),
    "a start in another age": (kernel("k", 8e15, 1), time_bounds.OUT_OF_RANGE),
    "no duration": (without(kernel("k", 1001, 1), "dur"), time_bounds.NO_DURATION),
    "a duration beyond int64": (kernel("k", 1001, 18446744073709551.615), time_bounds.TOO_LONG),
    "no number as the duration": (kernel("k", 1001, 1) | {"dur": "NaN"}, time_bounds.NO_DURATION),
    "a negative duration": (kernel("k", 1001, -5), time_bounds.NEGATIVE),
    "start and duration 0": (kernel("k", 0, 0), kineto_repairs.LOST),
    "years before": (kernel("k", 1000 - 40 * YEAR_US, 5), time_bounds.STRAY),
    "years after": (kernel("k", 1000 + 40 * YEAR_US, 5), time_bounds.STRAY),
    "two days after": (kernel("k", 1000 + 2 * DAY_US, 5), time_bounds.STRAY),
    "a duration of years": (kernel("k", 1050, 3 * YEAR_US), time_bounds.TOO_LONG),
    "the same event again": (kernel("gemm", 1020, 10, correlation=3), kineto_repairs.TWICE),
}


@pytest.mark.parametrize("kind", DROPPED)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_device_event_with_an_impossible_time_is_dropped_and_the_rest_is_exact(
    tmp_path: Path, kind: str, place: int
) -> None:
    event, reason = DROPPED[kind]
    window = one(tmp_path, [*GOOD[:place], event, *GOOD[place:]])
    assert figures(window) == GOOD_NS
    assert window.counts.dropped == {reason: 1}
    assert window.counts.repaired == {}
    assert (window.counts.read, window.counts.device) == (5, 4)


@pytest.mark.parametrize("kind", DROPPED)
def test_a_host_event_with_an_impossible_time_moves_nothing_either(tmp_path: Path, kind: str) -> None:
    event, reason = DROPPED[kind]
    window = one(tmp_path, [span("aten::mm", 990, 5), *GOOD, event | {"cat": "cpu_op", "args": {}}])
    assert figures(window) == GOOD_NS
    is_plain = reason in (kineto_repairs.LOST, kineto_repairs.TWICE)  # those are a device's damage only
    assert window.counts.dropped == ({} if is_plain else {reason: 1})


def test_lost_kernels_are_those_at_zero_for_zero_long_and_no_others(tmp_path: Path) -> None:
    events = [kernel("at zero", 0, 3), kernel("for zero", 5, 0), *[kernel("lost", 0, 0, correlation=n) for n in (7, 8)]]
    window = one(tmp_path, events)
    assert window.counts.dropped == {kineto_repairs.LOST: 2}
    assert window.counts.device == 2
    assert figures(window).span_ns == 5_000


def test_zero_is_a_time_in_a_file_that_begins_before_it(tmp_path: Path) -> None:
    window = one(tmp_path, [kernel("a", -10, 5), kernel("at zero", 0, 0), kernel("b", 10, 5)])
    assert window.counts.dropped == {}
    assert window.counts.device == 3


def test_a_file_of_lost_kernels_alone_abstains(tmp_path: Path) -> None:
    window = one(tmp_path, [kernel("lost", 0, 0, correlation=n) for n in range(3)])
    assert window.device_kind == "none"
    assert "none of them with a time" in dict(window.cannot_say)["breakdown"]
    assert window.counts.dropped == {kineto_repairs.LOST: 3}


def test_zero_durations_cost_nothing_and_are_kept(tmp_path: Path) -> None:
    window = one(tmp_path, [*GOOD, kernel("tick", 1012, 0, stream=3), kernel("tick", 1012, 0, stream=3)])
    assert figures(window) == GOOD_NS
    assert window.counts.device == 6
    assert window.counts.dropped == {}


def test_a_runaway_is_cut_at_its_streams_next_event(tmp_path: Path) -> None:
    window = one(tmp_path, [kernel("late", 0, 5000), kernel("a", 100, 10), kernel("b", 200, 10), kernel("c", 300, 10)])
    assert window.counts.repaired == {kineto_repairs.RUNAWAY: 1}
    assert figures(window).compute_ns == 130_000
    assert figures(window).span_ns == 310_000


@pytest.mark.parametrize(
    "events",
    [
        [kernel("long", 0, 5000), kernel("a", 100, 10)],
        [kernel("short", 0, 900), kernel("a", 100, 10), kernel("b", 200, 10)],
        [kernel("exactly a millisecond", 0, 1000), kernel("a", 100, 10), kernel("b", 200, 10)],
        [kernel("long", 0, 5000), kernel("a", 100, 10), kernel("b", 4995, 10)],
        [kernel("long", 0, 5000), kernel("a", 100, 10, stream=8), kernel("b", 200, 10, stream=8)],
        [kernel("long", 0, 5000), kernel("a", 100, 10, device=1), kernel("b", 200, 10, device=1)],
        [kernel("long", 0, 5000), *(span("Stream Sync", t, 10, cat="cuda_sync", stream=7) for t in (100, 200))],
        [kernel("long", 10, 5000), kernel("a", 10, 10), kernel("b", 200, 10)],
        [kernel("long", 0, 5000), kernel("a", 5000, 0), kernel("b", 5000, 0)],
    ],
    ids=["one whole", "short", "not over it", "one half", "another stream", "another device", "sync records",
         "one starts with it", "ticks at its end"],
)  # fmt: skip
def test_what_outlasts_less_than_two_whole_later_events_of_its_stream_is_real(
    tmp_path: Path, events: list[Event]
) -> None:
    window = one(tmp_path, events)
    assert window.counts.repaired == {}
    assert figures(window).compute_ns == max(e["ts"] + e["dur"] for e in events) * 1000 - events[0]["ts"] * 1000


def test_runaways_inside_runaways_are_all_cut(tmp_path: Path) -> None:
    late = [kernel("late", at, 9_000 + at, correlation=at) for at in (0, 10, 20)]
    window = one(tmp_path, [*late, kernel("a", 30, 5), kernel("b", 40, 5), kernel("c", 20_000, 5)])
    assert window.counts.repaired == {kineto_repairs.RUNAWAY: 3}
    assert figures(window).compute_ns == 30_000 + 15_000


def test_a_runaway_of_years_is_cut_and_not_dropped(tmp_path: Path) -> None:
    events = [kernel("late", 0, 2 * YEAR_US), kernel("a", 100, 10), kernel("b", 200, 10)]
    window = one(tmp_path, events)
    assert window.counts.repaired == {kineto_repairs.RUNAWAY: 1}
    assert window.counts.dropped == {}
    assert figures(window).compute_ns == 120_000


def test_without_a_stream_number_the_thread_is_the_stream(tmp_path: Path) -> None:
    def on(tid: str, start_us: float, dur_us: float) -> Event:
        return span("k", start_us, dur_us, cat="Kernel", tid=tid)

    events = [on("stream 7", 0, 5000), on("stream 7", 100, 10), on("stream 7", 200, 10)]
    assert one(tmp_path, events).counts.repaired == {kineto_repairs.RUNAWAY: 1}
    apart = [on("stream 7", 0, 5000), on("stream 8", 100, 10), on("stream 8", 200, 10)]
    assert one(tmp_path, apart).counts.repaired == {}


def cut_by_the_letter(starts: list[int], durs: list[int]) -> list[int]:
    """The rule event by event, from the last to the first, over a stream in order of start."""
    durs = list(durs)
    for row in reversed(range(len(starts))):
        end = starts[row] + durs[row]
        later = [other for other in range(len(starts)) if starts[other] > starts[row]]
        whole = [other for other in later if starts[other] < end and starts[other] + durs[other] <= end]
        if durs[row] > 1_000_000 and len(whole) >= 2:
            durs[row] = min(starts[other] for other in later) - starts[row]
    return durs


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), max_size=12))
def test_runaways_are_cut_by_the_letter_of_the_rule(drawn: list[tuple[int, int]]) -> None:
    import numpy as np

    drawn.sort(key=lambda event: event[0])
    starts, durs = [s * 400_000 for s, _ in drawn], [d * 400_000 for _, d in drawn]
    found = kineto_repairs._without_runaways(
        np.array(starts, dtype=np.int64), np.array(durs, dtype=np.int64), np.zeros(len(starts), dtype=bool)
    )
    assert found.tolist() == cut_by_the_letter(starts, durs)


def test_of_parts_years_apart_the_one_with_most_device_events_is_kept(tmp_path: Path) -> None:
    far = [kernel("stray", 1000 + YEAR_US + n, 1) for n in range(2)]
    host = [span("aten::mm", 1000 + YEAR_US + n, 1) for n in range(20)]
    window = one(tmp_path, [*far, *host, *GOOD, memory(1010, 5), memory(1000 + YEAR_US, 7)])
    assert figures(window) == GOOD_NS
    assert window.counts.dropped == {time_bounds.STRAY: 22, kineto_repairs.LOST_ALLOCATION: 1}


def test_parts_years_apart_of_which_none_is_the_larger_are_no_answer(tmp_path: Path) -> None:
    window = one(tmp_path, [kernel("a", 0, 1), kernel("b", YEAR_US, 1)])
    assert window.device_kind == "none"
    assert "more than a day apart" in dict(window.cannot_say)["breakdown"]


def test_an_old_files_stray_at_zero_does_not_cost_the_others_their_wall_time(tmp_path: Path) -> None:
    events = [kernel("a", UNIX_NS // 1000, 10), kernel("b", UNIX_NS // 1000 + 20, 10), kernel("stray", 0, 5)]
    window = one(tmp_path, events, base_ns=None)
    assert (window.start_ns, window.end_ns) == (UNIX_NS, UNIX_NS + 30_000)
    assert window.has_unix_time


def test_steps_with_impossible_times_are_no_steps(tmp_path: Path) -> None:
    window = one(tmp_path, [step(1, 1000, 50), step(2, 1050, -4), step(3, 1000, YEAR_US), *GOOD])
    assert window.steps == (1,)
    assert figures(window) == GOOD_NS


def test_allocator_events_without_a_time_are_counted(tmp_path: Path) -> None:
    events = [kernel("k", 1000, 5), memory(1001, 10) | {"ts": "soon"}, memory(1002, 20)]
    assert one(tmp_path, events).counts.dropped == {kineto_repairs.LOST_ALLOCATION: 1}


def test_what_has_no_process_or_thread_keeps_its_device_and_stream(tmp_path: Path) -> None:
    window = one(tmp_path, [without(without(event, "pid"), "tid") for event in GOOD])
    assert figures(window) == GOOD_NS
    assert window.counts.dropped == {}


def test_a_transfer_that_was_dropped_makes_no_cpu_rank(tmp_path: Path) -> None:
    transfer = span("gloo:all_reduce", 50, -1, cat="user_annotation", tid=8)
    window = one(tmp_path, [span("aten::mm", 0, 100), transfer])
    assert window.device_kind == "none"
    assert window.counts.dropped == {time_bounds.NEGATIVE: 1}


def test_an_operator_without_a_thread_is_no_compute_of_a_cpu_rank(tmp_path: Path) -> None:
    transfer = span("gloo:all_reduce", 50, 100, cat="user_annotation", tid=8)
    lost = without(span("aten::mm", 0, 500), "tid")
    window = one(tmp_path, [span("aten::mm", 0, 100), lost, transfer, without(transfer, "tid")])
    assert window.counts.dropped == {kineto_repairs.THREADLESS: 1}
    assert (figures(window).compute_ns, figures(window).hidden_ns) == (100_000, 50_000)


def test_a_kernel_without_arguments_counts(tmp_path: Path) -> None:
    window = one(tmp_path, [without(event, "args") for event in GOOD])
    assert figures(window) == GOOD_NS


drawn_events = st.lists(
    st.tuples(
        st.sampled_from(["gemm", "ncclDevKernel_AllReduce", "Memcpy HtoD"]),
        st.integers(2, 4_000), st.integers(-2, 3_000), st.sampled_from([7, 20]),
    ),
    min_size=1, max_size=15,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn_events, st.sampled_from([-10_000, -1, 1, 999, 10**9, 10**15, UNIX_NS // 1000]))
def test_answers_do_not_depend_on_the_time_base(
    tmp_path: Path, drawn: list[tuple[str, int, int, int]], by_us: int
) -> None:
    def events(offset_us: int) -> list[Event]:
        return [
            kernel(name, start + offset_us, dur, stream=stream) | ({"cat": "gpu_memcpy"} if "Memcpy" in name else {})
            for name, start, dur, stream in drawn
        ]

    here, there = one(tmp_path, events(0), base_ns=None), one(tmp_path, events(by_us), base_ns=None)
    assert figures(here) == figures(there)
    assert here.counts == there.counts
    assert here.device_kind == there.device_kind
    assert (here.spans.kind == there.spans.kind).all()
    assert (here.spans.start_ns - here.start_ns == there.spans.start_ns - there.start_ns).all()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn_events)
def test_parts_add_up_whatever_overlaps(tmp_path: Path, drawn: list[tuple[str, int, int, int]]) -> None:
    window = one(tmp_path, [kernel(name, start, dur, stream=stream) for name, start, dur, stream in drawn])
    found = figures(window)
    assert found.hidden_ns + found.exposed_ns == found.collective_ns
    assert found.busy_ns + found.idle_ns == found.span_ns
    assert max(found.compute_ns, found.collective_ns, found.copy_ns) <= found.busy_ns <= found.span_ns


def test_a_repaired_table_has_nothing_left_to_repair(tmp_path: Path) -> None:
    from meshscope.readers.kineto_columns import columns

    path = write_kineto(tmp_path / "t.json", [
        *GOOD, *(event for event, _ in DROPPED.values()),
        kernel("late", 0, 5000), kernel("x", 10, 5), kernel("y", 20, 5),
    ])  # fmt: skip
    once = kineto_repairs.repaired(columns(path))
    again = kineto_repairs.repaired(once)
    assert (again.dropped, again.repaired) == (once.dropped, once.repaired)
    assert len(again.start_ns) == len(once.start_ns)


def test_sync_records_on_a_kernels_stream_are_no_work(tmp_path: Path) -> None:
    sync = [span(name, 1000, 40, cat="cuda_sync", tid=7, stream=7, device=0) for name in ("Stream Sync", "Event Sync")]
    window = one(tmp_path, [*GOOD, *sync])
    assert figures(window) == GOOD_NS
    assert int((window.spans.kind == Kind.OTHER).sum()) == 2


def on_one_stream(**graph: object) -> list[Event]:
    """A collective of 5 ms and ten kernels of 0.35 ms beside it, all on one stream."""
    compute = [kernel("gemm", 1100 + 400 * n, 350, correlation=10 + n) for n in range(10)]
    return [kernel("ncclDevKernel_AllReduce_Sum_f32", 1000, 5000, correlation=1, **graph), *compute]


def test_kernels_of_a_graph_that_overlap_on_one_stream_are_left_as_they_are(tmp_path: Path) -> None:
    window = one(tmp_path, on_one_stream(**{"graph node id": 9}))
    assert figures(window).collective_ns == 5_000_000
    assert (figures(window).hidden_ns, figures(window).idle_ns) == (3_500_000, 0)
    assert window.counts.repaired == {}


@pytest.mark.parametrize("graph", [{}, {"graph node id": 0}])
def test_a_cut_that_takes_much_of_the_time_is_told(tmp_path: Path, graph: dict[str, object]) -> None:
    window = one(tmp_path, on_one_stream(**graph))
    assert figures(window).collective_ns == 100_000
    (why,) = (why for what, why in window.cannot_say if what == "hidden_ns")
    assert "4.90 ms cut off, beside a span of 4.05 ms" in why


def test_a_cut_that_takes_little_of_the_time_is_not_told(tmp_path: Path) -> None:
    window = one(tmp_path, [*on_one_stream(), kernel("gemm", 900_000, 10)])
    assert window.counts.repaired == {kineto_repairs.RUNAWAY: 1}
    assert "hidden_ns" not in dict(window.cannot_say)
