"""Kineto files of every generation and exporter that is known, rebuilt small: all are read exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_traces import UNIX_NS, Event, kernel, span, step, thread_name, write_kineto

from meshscope.analysis.breakdown import Breakdown, measure
from meshscope.errors import TraceError
from meshscope.readers import read
from meshscope.readers.kineto_pairs import NO_BEGINNING, NO_END
from meshscope.spans import Kind, Window

TRACE_SPAN: Event = {
    "ph": "X", "cat": "Trace", "ts": 0, "dur": 500, "pid": "Spans", "tid": "PyTorch Profiler",
    "name": "PyTorch Profiler (0)", "args": {"Op count": 0},
}  # fmt: skip


def one(path: Path, **how: Any) -> Window:
    (window,) = read(path, **how)
    return window


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def figures(window: Window) -> Breakdown:
    return measure(window).total


def test_2021s_capital_categories_threads_by_name_and_no_head(tmp_path: Path) -> None:
    def old(name: str, cat: str, tid: str, ts: int, dur: int, pid: Any = 25738, **args: Any) -> Event:
        return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}

    at = UNIX_NS // 1000
    window = one(write_kineto(tmp_path / "worker0.1623143089861.pt.trace.json", [
        old("aten::conv2d", "Operator", "25738", at, 50),
        old("cudaLaunchKernel", "Runtime", "25738", at + 1, 4, correlation=9),
        old("volta_sgemm", "Kernel", "stream 7", at + 10, 20, pid=0, stream=7, device=0, correlation=9),
        old("Memcpy HtoD (Pageable -> Device)", "Memcpy", "stream 7", at + 40, 5, pid=0, stream=7, device=0),
        old("Memset (Device)", "Memset", "stream 7", at + 45, 1, pid=0, stream=7, device=0),
        old("ncclAllReduceRingLLKernel_sum_f32", "Kernel", "stream 20", at + 20, 20, pid=0, stream=20, device=0),
        old("PyTorch Profiler (0)", "Trace", "PyTorch Profiler", at, 60, pid="Traces"),
    ], rank=None, base_ns=None))  # fmt: skip
    assert figures(window) == Breakdown(36_000, 20_000, 20_000, 6_000, 10_000, 10_000, 36_000, 0)
    assert window.start_ns == UNIX_NS + 10_000
    assert int((window.spans.kind == Kind.LAUNCH).sum()) == 1
    assert window.rank_from == "file name"
    assert {"stream 7", "stream 20"} <= set(window.spans.lanes)


def test_the_span_of_the_profiler_itself_is_no_work(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [TRACE_SPAN, kernel("gemm", 10, 5)]))
    assert figures(window).span_ns == 5_000
    assert window.counts.device == 1


def test_a_bare_list_without_categories_abstains_from_device_numbers(tmp_path: Path) -> None:
    events = [
        {"name": "aten::add", "ph": "X", "ts": 5.25, "dur": 3.5, "tid": 1, "pid": "CPU functions", "args": {}},
        {"name": "aten::mm", "ph": "X", "ts": 9, "dur": 3, "tid": 1, "pid": "CPU functions", "args": {}},
    ]
    path = written(tmp_path / "t.json", json.dumps(events))
    assert one(path).device_kind == "none"
    assert "host activity" in dict(one(path).cannot_say)["breakdown"]
    window = one(path, device_kind="cpu")
    assert figures(window).compute_ns == 6_500
    assert figures(window).span_ns == 6_750


def halves(*drawn: tuple[str, str, float], cat: str = "kernel", tid: Any = 15514734831341844875) -> list[Event]:
    return [{"ph": ph, "name": name, "cat": cat, "ts": ts, "pid": 0, "tid": tid} for ph, name, ts in drawn]


def test_beginnings_and_ends_in_a_bare_list_are_events(tmp_path: Path) -> None:
    events = halves(("B", "outer", 1), ("B", "inner", 2), ("E", "inner", 3.125), ("E", "outer", 9), ("B", "next", 12),
                    ("E", "", 20))  # fmt: skip
    events[-1].pop("name")
    window = one(written(tmp_path / "t.json", json.dumps(events)))
    spans = window.spans
    found = {spans.name_of(row): int(spans.end_ns[row] - spans.start_ns[row]) for row in range(len(spans))}
    assert found == {"outer": 8_000, "inner": 1_125, "next": 8_000}
    assert window.counts.read == 6
    assert figures(window).compute_ns == 16_000


def test_halves_of_events_pair_on_their_own_thread_and_in_order_of_time(tmp_path: Path) -> None:
    one_thread, other = halves(("E", "a", 10), ("B", "a", 1)), halves(("B", "a", 2), ("E", "a", 3), tid=5)
    window = one(write_kineto(tmp_path / "t.json", [*one_thread, *other]))
    spans = window.spans
    assert sorted((spans.end_ns - spans.start_ns).tolist()) == [1_000, 9_000]


def test_halves_without_a_partner_are_counted(tmp_path: Path) -> None:
    events = halves(("B", "open", 1), ("B", "a", 2), ("E", "a", 3), ("E", "nobody", 4), ("B", "timeless", 0))
    del events[-1]["ts"]
    window = one(write_kineto(tmp_path / "t.json", [*events, kernel("x", 8, 1)]))
    assert window.counts.dropped == {NO_END: 1, NO_BEGINNING: 1, "no time": 1}
    assert figures(window).compute_ns == 2_000


def test_complete_events_and_halves_may_stand_in_one_file(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [kernel("x", 0, 1), *halves(("B", "a", 2), ("E", "a", 3))]))
    assert figures(window).compute_ns == 2_000


def test_an_absolute_time_of_nineteen_digits_keeps_every_nanosecond(tmp_path: Path) -> None:
    text = json.dumps([kernel("a", 0, 0), kernel("b", 0, 0)]).replace('"ts": 0', '"ts": TS').replace('"dur": 0', "DUR")
    for ts, dur in (("1790000000000000.123", '"dur": 1.001'), ("1790000000000002.457", '"dur": "0.5"')):
        text = text.replace("TS", ts, 1).replace("DUR", dur, 1)
    window = one(written(tmp_path / "t.json", f'{{"traceEvents": {text}}}'))
    assert window.spans.start_ns.tolist() == [1790000000000000123, 1790000000000002457]
    assert window.spans.end_ns.tolist() == [1790000000000001124, 1790000000000002957]


@pytest.mark.parametrize("base", ["1790000000000000123", '"1790000000000000123"'])
def test_a_base_time_beyond_what_a_float_holds_is_exact(tmp_path: Path, base: str) -> None:
    events = json.dumps([kernel("a", 7.001, 1)])
    path = written(tmp_path / "t.json", f'{{"traceEvents": {events}, "baseTimeNanoseconds": {base}}}')
    assert one(path).start_ns == 1790000000000000123 + 7_001


@pytest.mark.parametrize("base", ["1.79e18", "-5", "null", "true", "99999999999999999999999", '"soon"', "[]"])
def test_a_base_time_that_is_none_is_not_used(tmp_path: Path, base: str) -> None:
    events = json.dumps([kernel("a", 7.001, 1)])
    window = one(written(tmp_path / "t.json", f'{{"baseTimeNanoseconds": {base}, "traceEvents": {events}}}'))
    assert not window.has_unix_time
    assert window.start_ns == 0


def test_metadata_may_stand_after_the_events_only(tmp_path: Path) -> None:
    around = {"distributedInfo": {"rank": 3, "world_size": 8, "pg_config": [{"pg_name": str(n)} for n in range(71)]},
              "baseTimeNanoseconds": UNIX_NS, "roctracer_version": 4.1, "INFO": [{"a": "b"}], "ERROR": []}  # fmt: skip
    path = written(tmp_path / "t.json", json.dumps({"traceEvents": [kernel("a", 1, 1)]} | around, indent=1))
    window = one(path)
    assert (window.rank, window.rank_from, window.world, window.start_ns) == (3, "trace", 8, UNIX_NS + 1_000)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"rank": 5}, (5, "trace", 0)),
        ({"backend": "mtia:hccl,cpu:gloo", "world_size": 4}, (0, "order", 4)),
        ({"rank": -1, "world_size": "two"}, (0, "order", 0)),
        ({"rank": 2.0}, (0, "order", 0)),
        ([], (0, "order", 0)),
        ("rank 3", (0, "order", 0)),
    ],
)
def test_what_distributed_info_does_not_say_is_not_taken_from_it(
    tmp_path: Path, info: Any, expected: tuple[int, str, int]
) -> None:
    window = one(write_kineto(tmp_path / "t.json", [kernel("a", 0, 1)], rank=None, distributedInfo=info))
    assert (window.rank, window.rank_from, window.world) == expected


@pytest.mark.parametrize("properties", [[], [{"id": n, "name": ""} for n in range(8)], None, {"id": 0}])
def test_device_properties_of_any_form_change_nothing(tmp_path: Path, properties: Any) -> None:
    window = one(write_kineto(tmp_path / "t.json", [kernel("a", 0, 1, device=2)], deviceProperties=properties))
    assert (window.device, window.rank) == (2, 0)


def test_events_in_any_order_of_time_give_one_answer(tmp_path: Path) -> None:
    events = [kernel("gemm", at, 10, correlation=at) for at in range(0, 300, 7)]
    events += [kernel("ncclAllReduce", at, 9, stream=20, correlation=at) for at in range(3, 300, 21)]
    in_order = one(write_kineto(tmp_path / "a.json", events))
    shuffled = one(write_kineto(tmp_path / "b.json", events[::-1]))
    assert figures(in_order) == figures(shuffled)
    assert shuffled.spans.start_ns.tolist() == sorted(shuffled.spans.start_ns.tolist())


def test_rocm_files_are_read_as_cuda_ones(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [
        span("hipLaunchKernel", 0, 2, cat="cuda_runtime", correlation=1),
        kernel("Cijk_Ailk_Bljk", 5, 10, device=2, stream=0, correlation=1, grid=[1, 1, 1]),
        kernel("ncclDevKernel_Generic", 8, 10, device=2, stream=5, **{"Collective name": "allreduce"}),
        span("Memcpy HtoD", 30, 1, cat="gpu_memcpy", stream=0, device=2),
    ], roctracer_version=4.1, hip_runtime_version=60200, deviceProperties=[]))  # fmt: skip
    assert (window.device, window.device_kind) == (2, "gpu")
    assert figures(window) == Breakdown(26_000, 10_000, 10_000, 1_000, 7_000, 3_000, 14_000, 12_000)


def test_a_stream_number_makes_no_device_event(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [
        kernel("triton_fused", 100, 2),
        span("Stream Wait Event", 0, 50, cat="cuda_sync", stream=-1, device=0),
        span("triton launch", 0, 90, cat="cpu_op", stream=0),
    ]))  # fmt: skip
    assert figures(window).span_ns == 2_000
    assert window.counts.device == 1


def test_short_overlaps_on_one_stream_stay_as_they_are(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [kernel("a", 0, 10), kernel("b", 7, 10), kernel("c", 16, 10)]))
    assert figures(window).compute_ns == 26_000
    assert window.spans.end_ns.tolist() == [UNIX_NS + 10_000, UNIX_NS + 17_000, UNIX_NS + 26_000]
    assert window.counts.repaired == {}


def test_a_step_launched_as_one_graph_counts_every_kernel_of_it(tmp_path: Path) -> None:
    launch = span("cudaGraphLaunch", 0, 5, cat="cuda_runtime", correlation=77)
    kernels = [kernel(f"k{n}", 10 + 3 * n, 2, correlation=77, **{"graph node id": n}) for n in range(20)]
    nccl = kernel("ncclDevKernel_AllReduce", 20, 30, stream=20, correlation=77)
    window = one(write_kineto(tmp_path / "t.json", [step(3, 0, 100), launch, *kernels, nccl]))
    spans = window.spans
    launched = [row for row in range(len(spans)) if spans.kind[row] in (Kind.COMPUTE, Kind.COLLECTIVE)]
    assert {spans.name_of(int(spans.link[row])) for row in launched} == {"cudaGraphLaunch"}
    assert {int(spans.step[row]) for row in launched} == {3}
    assert window.counts.device == 21
    assert (figures(window).compute_ns, figures(window).collective_ns) == (40_000, 30_000)
    assert window.counts.dropped == {}


def test_kernels_launched_before_the_capture_count(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [
        step(1, 0, 10), step(2, 10, 90), kernel("early", 0, 5, correlation=2**31),
        span("cudaLaunchKernel", 20, 1, cat="cuda_runtime", correlation=3), kernel("late", 30, 5, correlation=3),
    ]))  # fmt: skip
    assert figures(window).compute_ns == 10_000
    assert window.counts.device == 2


def test_a_file_of_device_events_alone_is_read(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [kernel("a", 0, 1), kernel("b", 3, 1)]))
    assert (figures(window).compute_ns, window.steps) == (2_000, ())


def test_metadata_events_may_outnumber_the_rest(tmp_path: Path) -> None:
    names = [thread_name(tid, f"thread {tid}") for tid in range(3000)] + [
        thread_name(1, f"again {n}") for n in range(3000)
    ]
    window = one(write_kineto(tmp_path / "t.json", [*names, kernel("a", 0, 1), {**TRACE_SPAN, "args": None}]))
    assert window.counts.read == 6002
    assert figures(window).compute_ns == 1_000


def test_numbers_that_fit_no_column_are_not_said(tmp_path: Path) -> None:
    huge = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 2**62, "Seq": 2**64, "Comms Id": 2**64}
    calls = [
        span("c10d::allreduce_", 0, 1, **{"Input Dims": dims, "Input type": types})
        for dims, types in (
            ([[2**62, 4]], ["float"]), (5, ["float"]), ({"a": 1}, 7), ([[-3]], ["float"]), ([[[10**30]]], ["List"]),
        )
    ]  # fmt: skip
    window = one(write_kineto(tmp_path / "t.json", [kernel("ncclDevKernel", 0, 5, **huge), *calls]))
    assert set(window.spans.size_bytes.tolist()) == {-1}
    assert set(window.spans.sequence.tolist()) == {-1}


def test_a_step_number_that_is_no_number_of_a_step_is_a_name(tmp_path: Path) -> None:
    marks = [span(f"ProfilerStep#{number}", 0, 10, cat="user_annotation") for number in ("9" * 30, "٣", "4x", "4")]
    assert one(write_kineto(tmp_path / "t.json", [kernel("a", 0, 1), *marks])).steps == (4,)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], "no event with a duration"),
        ([thread_name(1, "main"), {}], "no event with a duration (entries read: 2)"),
        ([span("aten::mm", 0, 1)], "only host activity"),
    ],
    ids=["none", "metadata only", "host only"],
)
@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_trace_without_device_work_abstains_and_says_what_it_holds(
    tmp_path: Path, events: list[Event], words: str, name: str
) -> None:
    window = one(write_kineto(tmp_path / name, events))
    assert window.device_kind == "none"
    assert words in dict(window.cannot_say)["breakdown"]
    assert window.counts.read == len(events)


@pytest.mark.parametrize("text", ["", "   ", '{"schemaVersion": 1}', '{"schemaVersion": 1, "dev', "[", '[{"a": 1}]'])
def test_a_file_without_events_is_refused_with_a_hint(tmp_path: Path, text: str) -> None:
    with pytest.raises(TraceError) as told:
        read(written(tmp_path / "t.json", text))
    assert told.value.hint


def why_none(tmp_path: Path, events: list[Event]) -> str:
    window = one(written(tmp_path / "t.json", json.dumps(events)))
    assert window.device_kind == "none"
    return dict(window.cannot_say)["breakdown"]


def test_cuda_times_of_the_profiler_before_kineto_are_named(tmp_path: Path) -> None:
    on_cpu = {"name": "add", "ph": "X", "ts": 101.524, "dur": 134.49, "tid": 1, "pid": "CPU functions", "args": {}}
    said = why_none(tmp_path, [on_cpu, on_cpu | {"pid": "CUDA functions", "tid": 0, "ts": 102.957}])
    assert "1 operator with CUDA times" in said
    assert "only host activity" not in said
    assert "only host activity" in why_none(tmp_path, [on_cpu])


def test_a_trace_view_of_ascend_is_named(tmp_path: Path) -> None:
    hcom = {
        "ph": "X",
        "name": "hcom_allReduce_",
        "pid": 1235,
        "tid": 1,
        "ts": "1700000000000500.5",
        "dur": 20,
        "args": {},
    }
    assert "Ascend" in why_none(tmp_path, [hcom, hcom | {"name": "MatMul0"}])
    assert "Ascend" not in why_none(tmp_path, [hcom | {"name": "hcomputer"}])
