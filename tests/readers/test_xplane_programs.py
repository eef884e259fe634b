"""Sizes, groups and paths that an xplane file's own programs tell of its operations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_hlo import Hlo, array, grouped
from made_traces import UNIX_NS, XSpace

from meshscope.readers import read
from meshscope.spans import Kind, SpanTable, Window

PATH = "jit(step)/transpose(jvp(Net))/Dense_0/dot_general"


def event(name: str, start_us: float, dur_us: float, /, **stats: Any) -> tuple[str, int, int, dict[str, Any]]:
    return name, round(start_us * 1e6), round(dur_us * 1e6), stats


def op(name: str, start_us: float, dur_us: float) -> tuple[str, int, int, dict[str, Any]]:
    return event(name, start_us, dur_us, hlo_op=name, device_ordinal=0)


def rendezvous(start_us: float, dur_us: float) -> tuple[str, int, int, dict[str, Any]]:
    stats = {"name": "RendezvousKey{global_devices=[0, 1]}"}
    return "Rendezvous", round(start_us * 1e6), round(dur_us * 1e6), stats


def program(devices: list[list[int]], *groups: tuple[int, ...]) -> Hlo:
    """An all-reduce of 256 bytes of bf16 and a product that comes from a layer's backward pass."""
    made = Hlo(devices)
    taken = made.add("p", "parameter", array("bf16", 128))
    made.add("dot.1", "dot", taken.shape, taken, path=PATH)
    fields: dict[str, Any] = {"channel_id": 1, "use_global_device_ids": True}
    made.add("psum.7", "all-reduce", taken.shape, taken, collective_device_list=grouped(*groups), **fields)
    return made


def carried(name: str, hlo_op: str, start_us: float, dur_us: float, /, *, number: int = 9) -> Any:
    return event(name, start_us, dur_us, hlo_op=hlo_op, hlo_module="jit_step", program_id=number, name="x")


def communicated(window: Window) -> list[tuple[str, int, str, str]]:
    spans = window.spans
    rows = [row for row in range(len(spans)) if spans.kind[row] == Kind.COLLECTIVE]
    return [
        (spans.name_of(row), int(spans.size_bytes[row]), told(spans, "dtype", row), told(spans, "group", row))
        for row in rows
    ]


def told(spans: SpanTable, column: str, row: int) -> str:
    number = int(getattr(spans, column)[row])
    return str(getattr(spans, f"{column}s")[number]) if number >= 0 else ""


def on_cpu(*events: Any, made: Hlo) -> XSpace:
    run = [(name, start, length, {**stats, "program_id": 9}) for name, start, length, stats in events]
    return XSpace().modules({9: made.program}).plane("/host:CPU", [("tf_XLAEigen/1", run)]).started(UNIX_NS)


def test_on_cpu_a_collective_has_the_size_of_its_program_and_the_group_of_its_rendezvous(tmp_path: Path) -> None:
    events = [op("dot.1", 0, 5), op("psum.7", 10, 10), rendezvous(11, 5), op("psum.7", 30, 10)]
    made = program([[0, 1, 2, 3]], (0, 1), (2, 3))
    (window,) = read(on_cpu(*events, made=made).write(tmp_path / "a.xplane.pb"))
    assert communicated(window) == [
        ("psum.7", 256, "bf16", "devices 0, 1"),
        # Which of the groups it is in, only a rendezvous tells.
        ("psum.7", 256, "bf16", "one of 2 groups of 2 devices"),
    ]
    assert [told(window.spans, "path", row) for row in range(len(window.spans))] == [PATH, "", "", ""]
    assert "size_bytes" not in dict(window.cannot_say)


def test_a_collective_of_another_program_has_no_size(tmp_path: Path) -> None:
    made = XSpace().modules({8: program([[0, 1]], (0, 1)).program})
    stats = {"hlo_op": "all-reduce.7", "device_ordinal": 0, "program_id": 9}
    path = made.plane("/host:CPU", [("t", [("all-reduce.7", 0, 10**6, stats)])]).started(UNIX_NS)
    (window,) = read(path.write(tmp_path / "a.xplane.pb"))
    assert communicated(window) == [("all-reduce.7", -1, "", "")]
    assert "holds no compiled program" in dict(window.cannot_say)["size_bytes"]


def on_gpus(made: Hlo, count: int, *events: Any) -> XSpace:
    space = XSpace().modules({9: made.program})
    for number in range(count):
        space.plane(f"/device:GPU:{number}", [("Stream #1", list(events))])
    return space.started(UNIX_NS)


KERNELS = (carried("gemm_fusion", "dot.1", 0, 5), carried("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "psum.7", 5, 9))


def test_on_gpus_each_device_is_in_its_own_group(tmp_path: Path) -> None:
    path = on_gpus(program([[0, 1, 2, 3]], (0, 2), (1, 3)), 4, *KERNELS).write(tmp_path / "a.xplane.pb")
    groups = [communicated(window)[0][1:] for window in read(path)]
    assert groups == [(256, "bf16", f"devices {pair}") for pair in ("0, 2", "1, 3", "0, 2", "1, 3")]
    assert [told(window.spans, "path", 0) for window in read(path)] == [PATH] * 4


def test_planes_of_other_devices_than_the_program_has_are_in_no_known_group(tmp_path: Path) -> None:
    """The second process of a run numbers its planes from 0 as well."""
    path = on_gpus(program([[0, 1, 2, 3]], (0, 2), (1, 3)), 2, *KERNELS).write(tmp_path / "a.xplane.pb")
    assert {communicated(window)[0][3] for window in read(path)} == {"one of 2 groups of 2 devices"}
    whole = on_gpus(program([[0, 1, 2, 3]], (0, 1, 2, 3)), 2, *KERNELS).write(tmp_path / "b.xplane.pb")
    assert {communicated(window)[0][3] for window in read(whole)} == {"devices 0, 1, 2, 3"}


def test_kernels_of_several_names_that_carry_out_one_call_share_a_size_that_is_not_told(tmp_path: Path) -> None:
    kernels = (*KERNELS, carried("ncclDevKernel_SendRecv", "psum.7", 20, 5))
    (window,) = read(on_gpus(program([[0, 1]], (0, 1)), 1, *kernels).write(tmp_path / "a.xplane.pb"))
    assert [size for _, size, _, _ in communicated(window)] == [-1, -1]


def test_a_kernel_without_a_program_has_the_path_of_its_own_stat(tmp_path: Path) -> None:
    kernels = [
        event("gemm", 0, 5, hlo_op="dot.1", name=PATH, tf_op="XlaModule:"),
        event("mul", 10, 5, hlo_op="mul.1", tf_op="jit(step)/mul:Mul"),
        event("copy", 20, 5, hlo_op="copy.1", name="x"),
        event("memset", 30, 5),
    ]
    path = XSpace().plane("/device:GPU:0", [("Stream #1", kernels)]).started(UNIX_NS).write(tmp_path / "a.xplane.pb")
    (window,) = read(path)
    assert [told(window.spans, "path", row) for row in range(4)] == [PATH, "jit(step)/mul", "", ""]


@pytest.mark.shared
def test_a_real_tpu_tells_bytes_and_that_its_group_is_one_of_four(shared: Path) -> None:
    """``f32[5,1024,1024,256] all-reduce(…), replica_groups=[4,2]<=[2,4]T(1,0)`` of eight devices, four of them here."""
    windows = read(shared / "traces" / "xla-tpu-inference2" / "tpu_inference_2.xplane.pb")
    assert len(windows) == 4
    for window in windows:
        assert {row[1:] for row in communicated(window)} == {
            (5 * 1024 * 1024 * 256 * 4, "f32", "one of 4 groups of 2 devices")
        }
        assert "jit(_psum)/jit(main)/reduce_sum" in window.spans.paths
