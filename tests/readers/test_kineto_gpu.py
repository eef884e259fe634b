"""Kineto files with device events: what counts, what it is, whose it is and when it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_traces import UNIX_NS, kernel, memory, span, step, thread_name, write_kineto

from meshscope.readers import read
from meshscope.spans import Kind, Window


def busy_ns(window: Window, *kinds: Kind) -> int:
    return window.spans.busy(*kinds).total_ns


def names(window: Window, kind: Kind) -> list[str]:
    return [window.spans.name_of(row) for row in range(len(window.spans)) if window.spans.kind[row] == kind]


def one(path: Path, **how: object) -> Window:
    (window,) = read(path, **how)  # type: ignore[arg-type]
    return window


def test_time_is_divided_by_what_kernels_are_not_by_their_stream(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [
        kernel("gemm", 10, 10),
        kernel("ncclDevKernel_AllReduce_Sum_f32", 15, 10),
        kernel("ncclDevKernel_AllGather", 40, 5, stream=7),
        span("Memcpy HtoD", 60, 2, cat="gpu_memcpy", stream=9, device=0),
        span("Memset", 62, 1, cat="gpu_memset", stream=9, device=0),
    ]))  # fmt: skip
    assert window.device_kind == "gpu"
    assert busy_ns(window, Kind.COMPUTE) == 10_000
    assert busy_ns(window, Kind.COLLECTIVE) == 15_000
    assert busy_ns(window, Kind.COPY) == 3_000
    assert window.end_ns - window.start_ns == 53_000
    assert window.counts.device == 5


def test_a_recorded_collective_name_beats_the_kernels_name(tmp_path: Path) -> None:
    about = {"Collective name": "_allgather_base", "dtype": "BFloat16", "In msg nelems": 10, "Out msg nelems": 80}
    window = one(write_kineto(tmp_path / "t.json", [
        kernel("ncclDevKernel_Generic", 0, 5, **about, **{"Process Group Name": "tp", "Seq": 4}),
        kernel("some_fused_kernel", 5, 5, **{"Collective name": "allreduce"}),
    ]))  # fmt: skip
    spans = window.spans
    assert [spans.collectives[number] for number in spans.collective] == ["all_gather", "all_reduce"]
    assert spans.rule_of(0) == "Collective name"
    assert spans.size_bytes.tolist() == [160, -1]
    assert spans.groups[spans.group[0]] == "tp"
    assert spans.sequence.tolist() == [4, -1]


@pytest.mark.parametrize(
    "category", ["gpu_user_annotation", "cuda_sync", "user_annotation", "overhead", "python_function", "Trace"]
)
def test_what_is_no_device_work_counts_for_nothing(tmp_path: Path, category: str) -> None:
    other = span("Stream Sync", 0, 1000, cat=category, stream=7, device=0)
    window = one(write_kineto(tmp_path / "t.json", [kernel("gemm", 10, 10), other]))
    assert busy_ns(window, Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY) == 10_000
    assert (window.start_ns, window.end_ns) == (UNIX_NS + 10_000, UNIX_NS + 20_000)


def test_capitalised_categories_of_2021_are_the_same_ones(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [
        span("gemm", 0, 5, cat="Kernel", tid="stream 7"), span("copy", 5, 5, cat="Memcpy", tid="stream 7"),
    ]))  # fmt: skip
    assert busy_ns(window, Kind.COMPUTE) == 5_000
    assert busy_ns(window, Kind.COPY) == 5_000


def test_kernels_are_linked_to_their_launches_and_kept_without(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [
        kernel("second", 20, 5, correlation=2),
        kernel("unlaunched", 0, 5, correlation=99),
        span("cudaLaunchKernel", 10, 2, cat="cuda_runtime", correlation=2),
        span("cudaDeviceSynchronize", 30, 2, cat="cuda_runtime", correlation=3),
    ]))  # fmt: skip
    spans = window.spans
    link = {spans.name_of(row): int(spans.link[row]) for row in range(len(spans))}
    assert spans.name_of(link["second"]) == "cudaLaunchKernel"
    assert link["unlaunched"] == -1
    assert names(window, Kind.LAUNCH) == ["cudaLaunchKernel"]
    assert window.counts.device == 2


def test_steps_are_the_profilers_marks_and_rows_know_theirs(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [
        step(4, 0, 100), step(5, 100, 100), kernel("a", 10, 5), kernel("b", 150, 5), kernel("late", 250, 5),
    ]), t0_unix_ns=UNIX_NS)  # fmt: skip
    assert window.steps == (4, 5)
    assert window.step_ns.tolist() == [[0, 100_000], [100_000, 200_000]]
    by_name = {window.spans.name_of(row): int(window.spans.step[row]) for row in range(len(window.spans))}
    assert (by_name["a"], by_name["b"], by_name["late"]) == (4, 5, -1)


def test_times_count_from_the_recordings_start(tmp_path: Path) -> None:
    path = write_kineto(tmp_path / "t.json", [kernel("a", 10.001, 1)])
    assert one(path, t0_unix_ns=UNIX_NS - 500).start_ns == 10_501
    assert one(path).start_ns == UNIX_NS + 10_001


def test_unix_microseconds_of_old_files_are_wall_time(tmp_path: Path) -> None:
    path = write_kineto(tmp_path / "t.json", [kernel("a", UNIX_NS // 1000, 1)], base_ns=None)
    assert one(path).start_ns == UNIX_NS
    assert one(path).has_unix_time


def test_a_file_without_wall_time_starts_at_zero_and_says_so(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [kernel("a", 5000, 1)], base_ns=None))
    assert window.start_ns == 0
    assert not window.has_unix_time
    assert "t0_unix_ns" in dict(window.cannot_say)


@pytest.mark.parametrize(
    ("name", "rank", "expected"),
    [("t.json", 3, (3, "trace")), ("rank-12.json", None, (12, "file name")), ("t.json", None, (0, "order"))],
)
def test_the_rank_is_told_by_the_content_first(
    tmp_path: Path, name: str, rank: int | None, expected: tuple[int, str]
) -> None:
    window = one(write_kineto(tmp_path / name, [kernel("a", 0, 1)], rank=rank))
    assert (window.rank, window.rank_from) == expected


def test_the_device_is_the_kernels_own(tmp_path: Path) -> None:
    assert one(write_kineto(tmp_path / "t.json", [kernel("a", 0, 1, device=5)])).device == 5


def test_lanes_are_streams_and_named_threads(tmp_path: Path) -> None:
    events = [kernel("a", 0, 1), span("aten::add", 0, 1), thread_name(1, "thread 1 (main)")]
    spans = one(write_kineto(tmp_path / "t.json", events)).spans
    lanes = {spans.name_of(row): spans.lanes[spans.lane[row]] for row in range(len(spans))}
    assert lanes == {"a": "stream 7", "aten::add": "thread 1 (main)"}


def test_rows_without_a_usable_time_are_dropped_and_counted(tmp_path: Path) -> None:
    broken = [kernel("no ts", 0, 1), kernel("negative", 20, -5), kernel("lost", 0, 0), kernel("word", 0, 1)]
    del broken[0]["ts"]
    broken[3]["ts"] = "soon"
    window = one(write_kineto(tmp_path / "t.json", [kernel("good", 10, 5), *broken]))
    assert window.counts.dropped == {"no time": 2, "negative duration": 1, "device event without a time": 1}
    assert names(window, Kind.COMPUTE) == ["good"]
    assert window.counts.read == 5


def test_odd_values_in_arguments_are_no_crash(tmp_path: Path) -> None:
    window = one(write_kineto(tmp_path / "t.json", [
        kernel("a", 0, 5, correlation=10159970886766084423),
        kernel("b", 5, 5, correlation="x", **{"Collective name": 5, "In msg nelems": "many"}),
        span("c", 10, 5, cat="kernel", stream="7", device=None),
    ]))  # fmt: skip
    assert window.counts.device == 3


def test_a_file_cut_short_is_incomplete_and_says_what_was_lost(tmp_path: Path) -> None:
    path = write_kineto(tmp_path / "t.json", [kernel("a", 0, 5), kernel("b", 5, 5)])
    path.write_bytes(path.read_bytes()[:-40])
    window = one(path)
    assert not window.is_complete
    assert window.counts.dropped == {"the file ends inside an event": 1}
    assert names(window, Kind.COMPUTE) == ["a"]


def test_a_packed_file_cut_short_is_incomplete_too(tmp_path: Path) -> None:
    path = write_kineto(tmp_path / "t.json.gz", [kernel(f"kernel {number}", number, 1) for number in range(2000)])
    path.write_bytes(path.read_bytes()[:-2000])
    window = one(path)
    assert not window.is_complete
    assert 0 < window.counts.device < 2000


def test_the_allocators_totals_are_kept_for_the_windows_device(tmp_path: Path) -> None:
    events = [kernel("a", 0, 5), memory(1, 100, device_type=0), memory(2, 200, device_type=0)]
    assert one(write_kineto(tmp_path / "t.json", events)).allocations is None


def test_waiting_for_peers_is_doubted_only_where_there_is_a_collective(tmp_path: Path) -> None:
    alone = one(write_kineto(tmp_path / "a.json", [kernel("gemm", 0, 1)]))
    among = one(write_kineto(tmp_path / "b.json", [kernel("ncclAllReduce", 0, 1)]))
    assert "wait_ns" not in dict(alone.cannot_say)
    assert "wait_ns" in dict(among.cannot_say)


@pytest.mark.parametrize(
    ("events", "word"),
    [
        ([span("aten::add", 0, 1)], "host activity"),
        ([span("cudaLaunchKernel", 0, 1, cat="cuda_runtime", correlation=1)], "launches but no device events"),
        ([span("range", 0, 1, cat="cuda_profiler_range")], "CUPTI"),
        ([span("x", 0, 1, cat="mtia_ccp_events")], "mtia_ccp_events"),
    ],
)
def test_a_trace_without_device_work_says_why(tmp_path: Path, events: list[dict[str, object]], word: str) -> None:
    window = one(write_kineto(tmp_path / "t.json", events))
    assert window.device_kind == "none"
    assert word in dict(window.cannot_say)["breakdown"]


@pytest.mark.parametrize(
    ("called", "taken", "left", "size"),
    [
        ("allreduce", 64, 64, 256),
        ("_allgather_base", 8, 64, 256),
        ("allgather", 8, 64, 256),
        ("_reduce_scatter_base", 64, 8, 256),
        ("reduce_scatter", 64, 8, 256),
        ("all_to_all", 64, 64, 256),
        ("all_to_allv", 48, 64, 256),  # the larger of what it sends and receives
        ("broadcast", 64, 64, 256),
        ("reduce", 64, 64, 256),
        ("gather", 8, 64, 256),
        ("scatter", 64, 8, 256),
        ("send", 64, 64, 256),
        ("recv", 64, 64, 256),
    ],
)
def test_a_kernels_size_is_that_of_the_whole_buffer(
    tmp_path: Path, called: str, taken: int, left: int, size: int
) -> None:
    about = {"Collective name": called, "dtype": "Float", "In msg nelems": taken, "Out msg nelems": left}
    window = one(write_kineto(tmp_path / "t.json", [kernel("ncclDevKernel_Generic", 0, 5, **about)]))
    assert window.spans.size_bytes.tolist() == [size]
