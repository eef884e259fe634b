"""XLA's synchronous collectives: where they cost, and where they are none of a mistake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked import codes, only, said
from drawn import run
from made_hlo import Hlo, array, grouped, tuple_of
from made_spans import Made, collective, kernel, window
from made_traces import UNIX_NS, XSpace

from meshscope.reports.analysis_json import analysis
from meshscope.run import Run, open_traces
from meshscope.spans import How, Window

SYNC, ASYNC = How.SYNCHRONOUS | How.SINGLE, How.ASYNCHRONOUS | How.SINGLE
STEPS = [(0, 100), (100, 200)]


def stepped(at: int, beside: int = 0) -> list[Made]:
    """A step of 100 ns computes 0–40 and 60–90, and reduces 40–60 and 90–95; a kernel hides some of the first."""
    found = [
        kernel(at, at + 40, lane="Stream #1"),
        collective(at + 40, at + 60, lane="Stream #2"),
        kernel(at + 60, at + 90, lane="Stream #1"),
        collective(at + 90, at + 95, lane="Stream #2"),
    ]
    return [*found, kernel(at + 40, at + 40 + beside, lane="Stream #3")] if beside else found


def ran(how: How, *, beside: int = 0, rank: int = 0, world: int = 0, device_kind: str = "gpu") -> Window:
    made = window([*stepped(0, beside), *stepped(100, beside)], framework="jax", steps=STEPS, rank=rank, world=world)
    is_collective = made.spans.collective >= 0
    column = np.where(is_collective, int(how), -1).astype(np.int8)
    return replace(made, device_kind=device_kind, spans=replace(made.spans, how=column))


def of(*windows: Window) -> Run:
    return run(windows=windows, strategy="pjit", framework="jax", ranks=len(windows))


def test_synchronous_collectives_cost_the_time_in_which_nothing_is_computed() -> None:
    found = only("synchronous-collectives", of(ran(SYNC)))
    # 20 and 5 ns of each step of 100 ns (the second ends at 195, its mark at 200).
    assert (found.cost_ns, found.cost_frac) == (25, pytest.approx(0.25))
    assert "by the compiled program, 4 all-reduces are synchronous" in said(found)
    assert "xla_gpu_enable_latency_hiding_scheduler=true" in found.fix
    assert "no-overlap" not in codes(of(ran(SYNC))), "it would be the same time again, without the reason"


def test_what_computes_beside_them_is_no_loss() -> None:
    assert only("synchronous-collectives", of(ran(SYNC, beside=15))).cost_ns == 10
    assert "synchronous-collectives" not in codes(of(ran(SYNC, beside=20)))


def test_asynchronous_collectives_that_hide_nothing_are_another_finding() -> None:
    found = codes(of(ran(ASYNC)))
    assert "no-overlap" in found
    assert "synchronous-collectives" not in found


def test_a_device_that_runs_them_asynchronously_halves_the_mean() -> None:
    assert only("synchronous-collectives", of(ran(SYNC), ran(ASYNC, rank=1))).cost_ns == 12.5


def test_waiting_for_a_late_rank_is_not_held_against_them() -> None:
    """Rank 1 comes 15 ns late to the first of each step: 5 of its 20 ns are transfer, and of rank 0's."""

    def late(made: Window) -> Window:
        start_ns = made.spans.start_ns.copy()
        first = (made.spans.collective >= 0) & (made.spans.end_ns - made.spans.start_ns == 20)
        start_ns[first] += 15
        return replace(made, spans=replace(made.spans, start_ns=start_ns))

    both = of(ran(SYNC, world=2), late(ran(SYNC, rank=1, world=2)))
    found = only("synchronous-collectives", both)
    assert found.cost_ns == 10


def test_neither_untold_nor_on_cpu_nor_without_steps_to_speak_of() -> None:
    assert "synchronous-collectives" not in codes(of(ran(SYNC, device_kind="cpu")))
    mixed = ran(How.COMMANDS)
    assert "synchronous-collectives" not in codes(of(mixed))


def test_collectives_in_command_buffers_are_named_beside_what_hides_nothing() -> None:
    found = only("no-overlap", of(ran(How.COMMANDS)))
    assert "4 of 4 collectives ran in command buffers" in said(found)
    assert found.fix.endswith('XLA_FLAGS="--xla_gpu_enable_command_buffer=" python …')


def test_on_a_tpu_the_flags_are_its_own() -> None:
    found = only("synchronous-collectives", of(ran(SYNC, device_kind="tpu")))
    assert "LIBTPU_INIT_ARGS" in found.fix


SYNC_MARK = b'{"collective_backend_config":{"is_sync":true}}'
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def xplane(folder: Path, config: bytes) -> Run:
    """Two GPUs in one file: of each step of 100 µs 60 compute, then 30 reduce two arrays, on a stream of their own."""
    made, f32 = Hlo([[0, 1]]), array("f32", 1024)
    taken = [made.add(f"p.{at}", "parameter", f32) for at in range(2)]
    made.add("dot.1", "dot", f32, *taken)
    groups = {"channel_id": 1, "use_global_device_ids": True, "collective_device_list": grouped((0, 1))}
    start = made.add(
        "all-reduce-start.1", "all-reduce-start", tuple_of(f32, f32), *taken, backend_config=config, **groups
    )
    made.add("all-reduce-done.1", "all-reduce-done", tuple_of(f32, f32), start)
    space = XSpace().modules({9: made.program})

    def carried(name: str, hlo_op: str, start_us: int, dur_us: int) -> Any:
        return name, start_us * 10**6, dur_us * 10**6, {"hlo_op": hlo_op, "hlo_module": "jit_step", "program_id": 9}

    for device in range(2):
        computing = [carried("gemm_fusion", "dot.1", at * 100, 60) for at in range(4)]
        reducing = [carried(NCCL, "all-reduce-start.1", at * 100 + 60, 30) for at in range(4)]
        space.plane(f"/device:GPU:{device}", [("Stream #1(Kernel)", computing), ("Stream #2(Kernel)", reducing)])
    marks = [("train", at * 100 * 10**6, 100 * 10**6, {"step_num": at}) for at in range(4)]
    path = space.plane("/host:CPU", [("python", marks)]).started(UNIX_NS).write(folder / "host.xplane.pb")
    (found,) = open_traces([path]).runs
    return found


def test_an_xplane_file_tells_by_its_program_what_ran_synchronously(tmp_path: Path) -> None:
    here = xplane(tmp_path, SYNC_MARK)
    found = only("synchronous-collectives", here)
    assert (found.cost_ns, found.cost_frac, found.of) == (30_000, 0.3, "the mean profiled step of 100 µs")
    assert "by the compiled program, 8 all-reduces are synchronous" in said(found)
    (recording,) = analysis((here,))["recordings"]
    (reduces,) = recording["xla"]["collectives"]
    told = {name: reduces[name] for name in ("count", "asynchronous", "synchronous", "combined", "told_by")}
    assert told == {
        "count": 8, "asynchronous": 0, "synchronous": 8, "combined": 8, "told_by": ["the compiled program"],
    }  # fmt: skip
    assert "asynchronous" not in {doubt["what"] for doubt in recording["cannot_say"]}


def test_the_same_kernels_without_the_mark_are_asynchronous_and_hide_nothing_all_the_same(tmp_path: Path) -> None:
    found = codes(xplane(tmp_path, b""))
    assert "synchronous-collectives" not in found
    assert "no-overlap" in found
