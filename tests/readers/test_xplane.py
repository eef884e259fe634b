"""xplane files: device planes by their operations, JAX on CPU by device, and damage that costs a plane at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_traces import UNIX_NS, Line, XSpace

from meshscope import config, kinds
from meshscope.errors import TraceError
from meshscope.readers import read, xplane_rows
from meshscope.readers.xplane_lines import _Met
from meshscope.readers.xplane_rows import Gathering, Tables
from meshscope.spans import Kind, Window

US = 1_000_000  # picoseconds


def op(name: str, start_us: float, dur_us: float, *, device: int = 0) -> tuple[str, int, int, dict[str, Any]]:
    stats = {"hlo_op": name, "hlo_module": "jit_step", "run_id": -5, "device_ordinal": device}
    return name, round(start_us * US), round(dur_us * US), stats


def event(name: str, start_us: float, dur_us: float, /, **stats: Any) -> tuple[str, int, int, dict[str, Any]]:
    return name, round(start_us * US), round(dur_us * US), stats


def rendezvous(start_us: float, dur_us: float) -> tuple[str, int, int, dict[str, Any]]:
    key = "all reduce RendezvousKey{run_id=RunId: -5, global_devices=[0, 1], num_local_participants=2}"
    return event("Rendezvous", start_us, dur_us, num_threads=2, name=key, id=2)


def host(*lines: Line) -> XSpace:
    return XSpace().plane("/host:CPU", list(lines)).started(UNIX_NS)


def ns(window: Window, kind: Kind) -> int:
    return window.spans.busy(kind).total_ns


def rows(window: Window, kind: Kind) -> list[str]:
    return [window.spans.name_of(row) for row in range(len(window.spans)) if window.spans.kind[row] == kind]


def test_on_cpu_every_device_is_a_rank_whatever_thread_its_operations_ran_on(tmp_path: Path) -> None:
    path = host(
        ("tf_XLAEigen/1", [op("dot.1", 0, 10, device=0), op("dot.1", 20, 10, device=1)]),
        ("tf_XLAEigen/2", [op("add", 5, 10, device=0), op("all-reduce.2", 40, 5, device=1)]),
    ).write(tmp_path / "a.xplane.pb")
    first, second = read(path, t0_unix_ns=UNIX_NS)
    assert [(w.rank, w.device, w.rank_from, w.device_kind, w.framework) for w in (first, second)] == [
        (0, 0, "device", "cpu", "jax"), (1, 1, "device", "cpu", "jax"),
    ]  # fmt: skip
    assert (ns(first, Kind.COMPUTE), ns(second, Kind.COMPUTE)) == (15_000, 10_000)
    assert (ns(first, Kind.COLLECTIVE), ns(second, Kind.COLLECTIVE)) == (0, 5_000)
    assert (first.start_ns, first.end_ns) == (0, 15_000)


def test_wrappers_marks_and_python_frames_are_no_compute(tmp_path: Path) -> None:
    noise = [
        event("ThreadpoolListener::Record", 0, 50), event("end: dot.1", 0, 50), event("$python frame", 0, 50),
        event("ThunkExecutor::Execute (wait for completion)", 0, 50, device_ordinal=0, run_id=-5),
        event("Wait for donation holds", 0, 50),
    ]  # fmt: skip
    path = host(("python", noise), ("tf_XLAEigen/1", [*noise, op("dot.1", 5, 10)])).write(tmp_path / "a.xplane.pb")
    (window,) = read(path)
    assert rows(window, Kind.COMPUTE) == ["dot.1"]
    assert len(window.spans) == 1


def test_a_host_event_named_like_an_operation_does_not_hide_it(tmp_path: Path) -> None:
    operations = [event("copy", 0, 5), op("copy", 10, 7), event("copy", 20, 5)]
    (window,) = read(host(("tf_XLAEigen/1", operations)).write(tmp_path / "a.xplane.pb"))
    assert ns(window, Kind.COMPUTE) == 7_000


def test_stats_that_are_no_numbers_are_no_crash(tmp_path: Path) -> None:
    operations = [op("dot", 0, 5), ("dot", 9 * US, US, {"hlo_op": "dot", "device_ordinal": "first", "run_id": 1})]
    marks = [
        event("train", 0, 5, step_num="four"),
        event("train", 5, 5, step_num=-1),
        event("train", 10, 5, step_num=3),
    ]
    (window,) = read(host(("python", marks), ("tf_XLAEigen/1", operations)).write(tmp_path / "a.xplane.pb"))
    assert (ns(window, Kind.COMPUTE), window.steps) == (5_000, (3,))


def test_waiting_for_peers_is_told_apart_from_transfer(tmp_path: Path) -> None:
    path = host((
        "tf_XLAEigen/1",
        [op("all-reduce", 0, 100), rendezvous(10, 30), event("Wait: pending_threads=1/2", 12, 27), rendezvous(200, 5)],
    )).write(tmp_path / "a.xplane.pb")  # fmt: skip
    (window,) = read(path)
    assert ns(window, Kind.COLLECTIVE) == 100_000
    assert ns(window, Kind.WAIT) == 30_000
    assert window.counts.dropped == {"a rendezvous outside any recorded collective": 1}
    spans = window.spans
    assert {spans.collectives[number] for number in spans.collective} == {"all_reduce"}
    assert {spans.groups[number] for number in spans.group} == {"devices 0, 1"}
    assert "wait_ns" not in dict(window.cannot_say)


def test_a_rendezvous_belongs_to_the_device_of_its_own_collective(tmp_path: Path) -> None:
    operations = [
        op("all-reduce", 0, 10, device=0),
        rendezvous(1, 2),
        op("all-reduce", 20, 10, device=1),
        rendezvous(21, 5),
    ]
    first, second = read(host(("tf_XLAEigen/1", operations)).write(tmp_path / "a.xplane.pb"))
    assert (ns(first, Kind.WAIT), ns(second, Kind.WAIT)) == (2_000, 5_000)


@pytest.mark.parametrize("name", ["while.3", "conditional", "call.1"])
def test_an_operation_that_encloses_others_is_no_compute(tmp_path: Path, name: str) -> None:
    operations = [op(name, 0, 100), op("dot", 10, 20), op("all-reduce", 40, 50)]
    (window,) = read(host(("tf_XLAEigen/1", operations)).write(tmp_path / "a.xplane.pb"))
    assert ns(window, Kind.COMPUTE) == 20_000
    assert (window.spans.busy(Kind.COMPUTE) & window.spans.busy(Kind.COLLECTIVE)).total_ns == 0


def test_a_call_that_holds_nothing_is_a_leaf_and_computes(tmp_path: Path) -> None:
    (window,) = read(host(("tf_XLAEigen/1", [op("call.1", 0, 100)])).write(tmp_path / "a.xplane.pb"))
    assert ns(window, Kind.COMPUTE) == 100_000


def test_steps_are_the_hosts_and_the_same_for_every_device(tmp_path: Path) -> None:
    path = host(
        ("python", [event("train", 0, 50, step_num=7, _r=1), event("train", 50, 50, step_num=8, _r=1)]),
        ("tf_XLAEigen/1", [op("dot", 10, 5, device=0), op("dot", 60, 5, device=1)]),
    ).write(tmp_path / "a.xplane.pb")
    first, second = read(path, t0_unix_ns=UNIX_NS - 1000)
    assert first.steps == second.steps == (7, 8)
    assert first.step_ns.tolist() == second.step_ns.tolist() == [[1000, 51_000], [51_000, 101_000]]
    assert (first.spans.step.tolist(), second.spans.step.tolist()) == ([7], [8])


def test_an_asynchronous_collective_is_one_interval_from_start_to_done(tmp_path: Path) -> None:
    start = "%all-gather-start.3 = (f32[8], f32[64]) all-gather-start(%p.1)"
    done = "%all-gather-done.9 = f32[64] all-gather-done(%all-gather-start.3)"
    line: Line = ("XLA Ops", [
        event(start, 0, 1), event("%fusion.1 = f32[8] fusion(%p)", 1, 20), event(done, 21, 4),
        event(start, 100, 1), event(done, 110, 4),
    ])  # fmt: skip
    (window,) = read(XSpace().plane("/device:TPU:0", [line]).started(UNIX_NS).write(tmp_path / "a.xplane.pb"))
    assert window.device_kind == "tpu"
    assert ns(window, Kind.COLLECTIVE) == 25_000 + 14_000
    assert len(rows(window, Kind.COLLECTIVE)) == 2
    assert (window.spans.busy(Kind.COMPUTE) & window.spans.busy(Kind.COLLECTIVE)).total_ns == 20_000


def test_asynchronous_copies_are_beside_the_core_and_collectives_there_count(tmp_path: Path) -> None:
    lines: list[Line] = [
        ("XLA Ops", [event("%fusion = f32[] fusion()", 0, 10), event("%copy-start = () copy-start()", 10, 1)]),
        ("Async XLA Ops", [event("%copy-start = () copy-start()", 10, 500), event("%all-reduce-start.1 = f32", 5, 10)]),
        ("Steps", [event("12", 0, 20)]),
        ("XLA Modules", [event("jit_step", 0, 900)]),
    ]
    (window,) = read(XSpace().plane("/device:TPU:3", lines).started(UNIX_NS).write(tmp_path / "a.xplane.pb"))
    assert (window.rank, window.device) == (3, 3)
    assert ns(window, Kind.COMPUTE) == 11_000
    assert ns(window, Kind.COLLECTIVE) == 10_000
    assert window.end_ns - window.start_ns == 15_000
    assert window.steps == (12,)


def test_kernels_of_a_gpu_plane_are_told_by_name_or_by_their_instruction(tmp_path: Path) -> None:
    lines: list[Line] = [
        ("Stream #17(Kernel)", [
            event("gemm_fusion", 0, 10), event("ncclDevKernel_AllReduce", 10, 10),
            event("AllReduceKernelImpl", 20, 10, hlo_op="all-reduce-start.1"), event("MemcpyD2D", 30, 10),
        ]),
        ("TensorFlow Ops", [event("gemm", 0, 1000)]),
    ]  # fmt: skip
    space = XSpace().plane("/device:GPU:2", lines).plane("/device:GPU:5", [("Stream #1", [])]).started(UNIX_NS)
    (window,) = read(space.write(tmp_path / "a.xplane.pb"))
    assert (window.rank, window.device_kind) == (2, "gpu")
    assert [ns(window, kind) for kind in (Kind.COMPUTE, Kind.COLLECTIVE, Kind.COPY)] == [10_000, 20_000, 10_000]


def test_every_way_of_naming_a_stream_is_a_line_of_operations_and_nothing_else_is(tmp_path: Path) -> None:
    lines: list[Line] = [
        ("Stream #17(Kernel)", [event("gemm", 0, 10)]),
        ("Stream #8(MemcpyOther)", [event("MemcpyOther", 10, 10)]),
        ("Stream #118(MemcpyD2H,MemcpyD2D,Compute)", [event("MemcpyD2H", 20, 10), event("fusion_1", 30, 10)]),
        ("Stream #134(Compute)", [event("loop_fusion", 40, 10)]),
        ("Stream #2", [event("__amd_rocclr_copyBuffer.kd", 50, 10), event("input_transpose_fusion", 60, 10)]),
        *((name, [event("gemm", 0, 900)]) for name in
          ("TensorFlow Ops", "TensorFlow Name Scope", "XLA Modules", "Steps", "Framework Ops", "Source", "Overlay")),
    ]  # fmt: skip
    (window,) = read(XSpace().plane("/device:GPU:0", lines).started(UNIX_NS).write(tmp_path / "a.xplane.pb"))
    assert rows(window, Kind.COMPUTE) == ["gemm", "fusion_1", "loop_fusion", "input_transpose_fusion"]
    assert rows(window, Kind.COPY) == ["MemcpyOther", "MemcpyD2H", "__amd_rocclr_copyBuffer.kd"]
    assert (len(window.spans), window.end_ns - window.start_ns) == (7, 70_000)
    assert window.counts.read == 7 + 7


def test_planes_that_are_no_devices_that_worked_are_no_ranks(tmp_path: Path) -> None:
    work: Line = ("Stream #1(Kernel)", [event("gemm", 0, 10)])
    space = XSpace().plane("/host:metadata", [("line", [event("x", 0, 5)])])
    space.plane("/device:CUSTOM:Megascale Trace", [("Stream #1", [event("send", 0, 5)])], stats={"graph_protos": 1})
    space.plane("/device:GPU:0", []).plane("/device:GPU:1", [("Stream #1(Kernel)", [])]).plane("/device:GPU:3", [work])
    space.plane("/host:CPU", [("Host Threads/583", [event("hipModuleLaunchKernel", 0, 50, hlo_op="gemm")])])
    (window,) = read(space.plane("#Chip 0 Misc", [work]).started(UNIX_NS).write(tmp_path / "a.xplane.pb"))
    assert (window.rank, window.device, window.counts.device) == (3, 3, 1)


def test_events_of_all_planes_are_counted_as_read(tmp_path: Path) -> None:
    lines: list[Line] = [("XLA Ops", [event("%dot", 0, 1), event("%add", 1, 1)]), ("Steps", [event("0", 0, 2)])]
    space = XSpace().plane("/device:TPU:0", lines).plane("/host:CPU", [("main/1", [event("f", 0, 1)] * 4)])
    (window,) = read(space.started(UNIX_NS).write(tmp_path / "a.xplane.pb"))
    assert (window.counts.read, window.counts.device) == (7, 2)


PROGRAM = {
    7: {"psum.7": "all-reduce", "all_gather.8": "transpose", "renamed.1": "reduce-scatter", "dot.1": "dot"},
    9: {"psum.7": "add"},
}


def run_op(name: str, start_us: float, program: int | None) -> tuple[str, int, int, dict[str, Any]]:
    told = {} if program is None else {"program_id": program}
    return event(name, start_us, 10, hlo_op=name, device_ordinal=0, run_id=1, **told)


def test_an_instruction_is_what_its_program_says_whatever_jax_called_it(tmp_path: Path) -> None:
    operations = [
        run_op("psum.7", 0, 7), run_op("all_gather.8", 10, 7), run_op("renamed.1", 20, 7), run_op("dot.1", 30, 7),
        run_op("psum.7", 40, 9), run_op("psum.7", 50, 5), run_op("ppermute", 60, None),
    ]  # fmt: skip
    space = XSpace().programs(PROGRAM).plane("/host:CPU", [("tf_XLAEigen/1", operations)]).started(UNIX_NS)
    (window,) = read(space.write(tmp_path / "a.xplane.pb"))
    spans = window.spans
    told = [(spans.name_of(row), Kind(spans.kind[row]).name, spans.rule_of(row)) for row in range(len(spans))]
    assert told == [
        ("psum.7", "COLLECTIVE", "the compiled program"), ("all_gather.8", "COMPUTE", "the compiled program"),
        ("renamed.1", "COLLECTIVE", "the compiled program"), ("dot.1", "COMPUTE", "everything else"),
        ("psum.7", "COMPUTE", "the compiled program"), ("psum.7", "COLLECTIVE", "JAX collective"),
        ("ppermute", "COLLECTIVE", "JAX collective"),
    ]  # fmt: skip
    assert [spans.collectives[number] for number in spans.collective[[0, 2, 6]]] == [
        "all_reduce", "reduce_scatter", "permute",
    ]  # fmt: skip


def test_a_kernel_is_what_its_instruction_is_by_the_program(tmp_path: Path) -> None:
    kernels = [
        event("MemcpyP2P", 0, 10, hlo_op="psum.7", program_id=7),
        event("input_transpose", 10, 10, hlo_op="all_gather.8", program_id=7),
        event("MemcpyP2P", 20, 10, hlo_op="psum.7", program_id=9),
        event("MemcpyP2P", 30, 10, hlo_op="ppermute.1"),
    ]
    space = XSpace().programs(PROGRAM).plane("/device:GPU:0", [("Stream #1", kernels)]).started(UNIX_NS)
    (window,) = read(space.write(tmp_path / "a.xplane.pb"))
    assert [ns(window, kind) for kind in (Kind.COLLECTIVE, Kind.COMPUTE, Kind.COPY)] == [20_000, 10_000, 10_000]


def test_a_damaged_program_leaves_names_to_tell(tmp_path: Path) -> None:
    space = XSpace().programs(PROGRAM, damaged=(7, 9))
    space.plane("/host:CPU", [("t", [run_op("psum.7", 0, 7), run_op("renamed.1", 10, 7)])]).started(UNIX_NS)
    (window,) = read(space.write(tmp_path / "a.xplane.pb"))
    assert (rows(window, Kind.COLLECTIVE), rows(window, Kind.COMPUTE)) == (["psum.7"], ["renamed.1"])


def test_a_users_rule_beats_instruction_and_program(tmp_path: Path) -> None:
    before = config.current()
    rules = (
        config.KernelRule("^Memcpy", "other", "", "not counted"),
        config.KernelRule("^psum", "compute", "", "mine"),
    )
    space = XSpace().programs(PROGRAM)
    space.plane("/device:GPU:0", [("Stream #1", [event("MemcpyP2P", 0, 10, hlo_op="psum.7", program_id=7)])])
    device = space.started(UNIX_NS).write(tmp_path / "a.xplane.pb")
    host_only = XSpace().programs(PROGRAM).plane("/host:CPU", [("t", [run_op("psum.7", 0, 7)])]).started(UNIX_NS)
    cpu = host_only.write(tmp_path / "b.xplane.pb")
    config.use(config.Settings(rules))
    try:
        kinds = [read(path)[0].spans.kind.tolist() for path in (device, cpu)]
    finally:
        config.use(before)
    assert kinds == [[Kind.OTHER], [Kind.COMPUTE]]


def test_picoseconds_are_floored_at_the_start_and_at_the_end(tmp_path: Path) -> None:
    line: Line = ("XLA Ops", [("a", 1_999, 1_002, {}), ("b", 3_001, 999, {})])
    (window,) = read(XSpace().plane("/device:TPU:0", [line], timestamp_ns=UNIX_NS).write(tmp_path / "a.xplane.pb"))
    assert window.spans.start_ns.tolist() == [UNIX_NS + 1, UNIX_NS + 3]
    assert window.spans.end_ns.tolist() == [UNIX_NS + 3, UNIX_NS + 4]


def test_a_file_that_does_not_say_when_it_was_made_starts_at_zero(tmp_path: Path) -> None:
    line: Line = ("XLA Ops", [event("a", 500, 10)])
    (window,) = read(XSpace().plane("/device:TPU:0", [line]).write(tmp_path / "a.xplane.pb"), t0_unix_ns=5)
    assert window.start_ns == 0
    assert "t0_unix_ns" in dict(window.cannot_say)


def test_a_tpu_loop_counts_as_compute_and_is_doubted(tmp_path: Path) -> None:
    line: Line = ("XLA Ops", [event("%while.1 = f32[] while(%x)", 0, 100), event("%all-reduce = f32[]", 10, 20)])
    (window,) = read(XSpace().plane("/device:TPU:0", [line]).started(UNIX_NS).write(tmp_path / "a.xplane.pb"))
    assert "hidden_ns" in dict(window.cannot_say)


def test_a_file_without_device_work_says_so(tmp_path: Path) -> None:
    (window,) = read(host(("python", [event("train", 0, 5, step_num=1)])).write(tmp_path / "a.xplane.pb"))
    assert window.device_kind == "none"
    assert "breakdown" in dict(window.cannot_say)


def test_a_file_cut_short_gives_the_planes_before_the_cut(tmp_path: Path) -> None:
    line: Line = ("XLA Ops", [event("a", 0, 10)])
    space = XSpace().plane("/device:TPU:0", [line]).plane("/device:TPU:1", [line])
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space.content()[:-5])
    (window,) = read(path)
    assert window.device == 0
    assert not window.is_complete
    assert window.counts.dropped == {"the file ends inside an event": 1}


def test_a_plane_that_is_not_protobuf_costs_only_itself(tmp_path: Path) -> None:
    good = XSpace().plane("/device:TPU:0", [("XLA Ops", [event("a", 0, 10)])]).content()
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(good + b"\x0a\x03\x1a\xff\xff")
    (window,) = read(path)
    assert window.counts.dropped == {"a plane that is not protobuf": 1}


def test_a_protobuf_destroyed_as_text_is_named_as_that(tmp_path: Path) -> None:
    path = tmp_path / "a.xplane.pb"
    content = b"\x0a\xff\xff\x7f\x12" + bytes(range(128, 256)) * 20
    path.write_bytes(content.decode("utf-8", "replace").encode())
    with pytest.raises(TraceError) as told:
        read(path)
    assert told.value.hint


def test_a_file_whose_only_time_is_just_before_zero(tmp_path: Path) -> None:
    path = (
        XSpace().plane("/device:TPU:0", [("XLA Ops", [("%x = f32[]", -1000, 0, {})])]).write(tmp_path / "a.xplane.pb")
    )
    (window,) = read(path)
    assert (window.spans.start_ns.tolist(), window.start_ns) == ([0], 0)


def why_none(path: Path) -> str:
    (window,) = read(path)
    assert window.device_kind == "none"
    return dict(window.cannot_say)["breakdown"]


RUNS = event("TfrtCpuExecutable::ExecuteHelper", 0, 5)


def test_operations_of_jax_on_cpu_without_a_device_are_told_as_such(tmp_path: Path) -> None:
    made = host(("python", [RUNS]), ("tf_XLAEigen/1", [event("dot.1", 0, 10, hlo_op="dot.1", hlo_module="jit_step")]))
    assert "no device beside the operations" in why_none(made.write(tmp_path / "a.xplane.pb"))
    made = host(("python", [RUNS]), ("tf_XLAEigen/1", [event("ThreadpoolListener::Record", 0, 10)]))
    assert "none of the operations" in why_none(made.write(tmp_path / "b.xplane.pb"))
    made = host(("python", [event("f", 0, 5)]))
    assert "none of JAX on CPU (events read: 1)" in why_none(made.write(tmp_path / "c.xplane.pb"))


def test_two_profiles_of_jax_on_cpu_behind_each_other_are_no_rank_at_all(tmp_path: Path) -> None:
    one = host(("tf_XLAEigen/1", [op("dot.1", 0, 10)])).content()
    other = host(("tf_XLAEigen/1", [op("dot.1", 50, 20)])).content()
    (tmp_path / "a.xplane.pb").write_bytes(one + other)
    assert "several planes are of the host's CPU" in why_none(tmp_path / "a.xplane.pb")


def test_a_file_that_is_cut_before_the_names_of_its_operations_says_so(tmp_path: Path) -> None:
    operations = [op("dot.1", at, 10) for at in range(0, 1000, 20)]
    made = XSpace().plane("/host:metadata", []).plane("/host:CPU", [("tf_XLAEigen/1", operations)])
    content = made.content()
    (tmp_path / "a.xplane.pb").write_bytes(content[: len(content) // 2])
    assert "the file was cut" in why_none(tmp_path / "a.xplane.pb")


@pytest.mark.parametrize("number", [3, 1 << 40])
def test_a_line_tells_which_names_it_has_however_large_their_numbers(number: int) -> None:
    found = _Met(np.array([1, 2, number], dtype=np.int64))
    found.add(np.array([number, 1, number], dtype=np.int64))
    assert found.ids == {1, number}
    assert _Met(np.empty(0, dtype=np.int64)).ids == frozenset()


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 200])
def test_rows_are_gathered_whole_wherever_their_parts_end(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 100 and 200 nothing is left when the last are asked for."""
    monkeypatch.setattr(xplane_rows, "_WAITING", 100)
    tables = Tables()
    gathering = Gathering()
    for at in range(count):
        name = tables.names.codes([f"fusion.{at % 7}"])
        time_ns = np.array([count - at], dtype=np.int64)
        gathering.add(tables.rows(name, time_ns, time_ns + 1, lane="XLA Ops", rules=kinds.INSTRUCTIONS))
    rows = gathering.by_start()
    assert rows.start_ns.tolist() == list(range(1, count + 1))
    assert len(rows.kind) == len(rows.size_bytes) == count
    assert set(rows.size_bytes.tolist()) <= {-1}
