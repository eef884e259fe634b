"""How programs run their collectives: in a pair or in place, of one array or several, in a command buffer or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_hlo import Hlo, array, tuple_of
from made_traces import UNIX_NS, XSpace

from meshscope.readers import read
from meshscope.readers.hlo_program import instructions_of
from meshscope.spans import How, Kind, SpanTable

F32 = array("f32", 256)

SYNC = b'{"operation_queue_id":"0","wait_on_operation_queues":[],"collective_backend_config":{"is_sync":true,' \
       b'"no_parallel_custom_call":false},"force_earliest_schedule":false}'  # fmt: skip
"""As XLA 0.4.30 wrote it."""


def how(made: Hlo, name: str) -> How:
    return instructions_of(made.content())[name].how


def pair(config: bytes = b"", *, arrays: int = 1, opcode: str = "all-reduce") -> Hlo:
    made = Hlo()
    taken = [made.add(f"p.{at}", "parameter", F32) for at in range(arrays)]
    shape = F32 if arrays == 1 else tuple_of(*[F32] * arrays)
    start = made.add(f"{opcode}-start.1", f"{opcode}-start", shape, *taken, backend_config=config)
    made.add(f"{opcode}-done.1", f"{opcode}-done", shape, start)
    return made


@pytest.mark.parametrize(
    ("config", "mode"),
    [
        (b"", How.ASYNCHRONOUS),
        (b"{}", How.ASYNCHRONOUS),
        (b'{"collective_backend_config":{"is_sync":false}}', How.ASYNCHRONOUS),
        (b'{"collective_backend_config":{"no_parallel_custom_call":true}}', How.ASYNCHRONOUS),
        (SYNC, How.SYNCHRONOUS),
        (b'{"is_sync":true}', How.SYNCHRONOUS),  # of 2023
        (b"\x0a\x02\x08\x01", How(0)),
        (b'{"collective_backend_config":{"is_sync":"maybe"}}', How(0)),
        (b'{"collective_backend_config":' * 5000, How(0)),
    ],
    ids=["none", "empty", "not sync", "default", "sync", "of 2023", "no JSON", "no flag", "too deep"],
)
def test_a_start_is_asynchronous_unless_it_is_marked(config: bytes, mode: How) -> None:
    assert how(pair(config), "all-reduce-start.1") & (How.ASYNCHRONOUS | How.SYNCHRONOUS) == mode


def test_a_plain_collective_is_synchronous_and_a_done_says_nothing() -> None:
    made = Hlo()
    taken = made.add("p", "parameter", F32)
    made.add("psum.7", "all-reduce", F32, taken)
    made.add("send.1", "send", F32, taken)
    assert how(made, "psum.7") == How.SYNCHRONOUS | How.SINGLE
    assert how(made, "send.1") == How.SINGLE, "a send is neither"
    assert how(made, "p") == How(0)
    assert how(pair(), "all-reduce-done.1") == How(0)


def test_a_wrapper_is_marked_itself_and_not_what_it_wraps() -> None:
    def wrapped(config: bytes) -> Hlo:
        made = Hlo()
        inner = made.computation()
        taken = made.add("q", "parameter", F32, within=inner)
        made.add("rs", "reduce-scatter", array("f32", 64), taken, within=inner)
        given = made.add("p", "parameter", F32)
        made.add("rs-start", "async-start", F32, given, calls=inner, backend_config=config)
        return made

    for name in ("rs-start", "rs"):  # a kernel may name either
        assert how(wrapped(b""), name) == How.ASYNCHRONOUS | How.SINGLE
        assert how(wrapped(SYNC), name) == How.SYNCHRONOUS | How.SINGLE
        assert how(wrapped(b"?"), name) == How.SINGLE


def test_a_wrapper_of_several_collectives_carries_several_arrays() -> None:
    made = Hlo()
    inner = made.computation()
    taken = made.add("q", "parameter", F32, within=inner)
    made.add("ag", "all-gather", array("f32", 512), taken, within=inner)
    made.add("ar", "all-reduce", F32, taken, within=inner)
    given = made.add("p", "parameter", F32)
    made.add("group-start", "async-start", F32, given, calls=inner)
    assert how(made, "group-start") == How.ASYNCHRONOUS | How.COMBINED


def test_a_collective_within_a_fusion_is_left_untold() -> None:
    made = Hlo()
    inner = made.computation()
    taken = made.add("q", "parameter", F32, within=inner)
    made.add("rs", "reduce-scatter", array("f32", 64), taken, within=inner)
    made.add("fusion.1", "fusion", F32, made.add("p", "parameter", F32), calls=inner)
    assert how(made, "fusion.1") == How.SINGLE


@pytest.mark.parametrize(
    ("opcode", "arrays", "many"),
    [
        ("all-reduce", 1, How.SINGLE),
        ("all-reduce", 48, How.COMBINED),
        ("all-gather", 2, How.COMBINED),
        ("reduce-scatter", 2, How.COMBINED),
        # The operands of an all-to-all may be the parts for each peer, those of a permute say where within a buffer.
        ("all-to-all", 4, How(0)),
        ("collective-permute", 3, How(0)),
    ],
)
def test_a_combined_collective_takes_several_arrays(opcode: str, arrays: int, many: How) -> None:
    made = Hlo()
    taken = [made.add(f"p.{at}", "parameter", F32) for at in range(arrays)]
    made.add("it", opcode, tuple_of(*[F32] * arrays), *taken)
    assert how(made, "it") & (How.SINGLE | How.COMBINED) == many


def test_a_call_of_a_command_buffer_is_one() -> None:
    made = Hlo()
    for name, called in (("call.4", b"command_buffer.2"), ("call.5", b"remat_body")):
        inner = made.computation()
        inner.name = called
        made.add(name, "call", F32, made.add(f"p.{name}", "parameter", F32), calls=inner)
    assert how(made, "call.4") == How.COMMANDS
    assert how(made, "call.5") == How(0)


NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def carried(name: str, hlo_op: str, start_us: float, dur_us: float, /, **stats: Any) -> Any:
    told = {"hlo_op": hlo_op, "hlo_module": "jit_step", "program_id": 9} | stats
    return name, round(start_us * 1e6), round(dur_us * 1e6), told


def on_gpu(tmp_path: Path, made: Hlo, *events: Any) -> SpanTable:
    space = XSpace().modules({9: made.program}).plane("/device:GPU:0", [("Stream #1(Kernel)", list(events))])
    (window,) = read(space.started(UNIX_NS).write(tmp_path / "a.xplane.pb"))
    return window.spans


def test_kernels_are_run_as_the_instructions_that_they_carry_out(tmp_path: Path) -> None:
    made = pair(SYNC, arrays=2)
    made.add("all-reduce-start.2", "all-reduce-start", F32, made.add("q", "parameter", F32))
    spans = on_gpu(
        tmp_path,
        made,
        carried("gemm", "dot.1", 0, 5),
        carried(NCCL, "all-reduce-start.1", 5, 5),
        carried(NCCL, "all-reduce-start.2", 10, 5),
        carried(NCCL, "all-reduce-start.3", 15, 5),
    )
    assert spans.how.tolist() == [-1, How.SYNCHRONOUS | How.COMBINED, How.ASYNCHRONOUS | How.SINGLE, -1]
    assert spans.how.dtype == np.int8


def test_kernels_of_a_graph_are_told_by_its_number_or_by_the_name_of_what_they_carry_out(tmp_path: Path) -> None:
    made = Hlo()
    inner = made.computation()
    inner.name = b"command_buffer"
    made.add("call", "call", F32, made.add("p", "parameter", F32), calls=inner)
    spans = on_gpu(
        tmp_path,
        made,
        carried("gemm", "dot.1", 0, 5),
        carried("gemm", "dot.1", 5, 5, cuda_graph_id=12),
        carried("gemm", "command_buffer_1", 10, 5),
        carried(NCCL, "call", 15, 5),
    )
    assert spans.how.tolist() == [-1, How.COMMANDS, How.COMMANDS, How.COMMANDS]
    assert spans.kind.tolist() == [Kind.COMPUTE] * 3 + [Kind.COLLECTIVE]


def test_what_is_told_of_kernels_survives_the_cache(tmp_path: Path) -> None:
    from meshscope.readers.packing import pack, unpack

    space = XSpace().plane("/device:GPU:0", [("Stream #1", [carried("gemm", "command_buffer_1", 10, 5)])])
    windows = read(space.started(UNIX_NS).write(tmp_path / "a.xplane.pb"))
    with (tmp_path / "kept").open("w+b") as file:
        pack(file, windows, "key")
        file.flush()
        (again,) = unpack(file, "key")
    assert again.spans.how.tolist() == [How.COMMANDS]


@pytest.mark.shared
def test_real_collectives_of_a_tpu_are_told_by_their_program(shared: Path) -> None:
    windows = read(shared / "traces" / "xla-tpu-inference2" / "tpu_inference_2.xplane.pb")
    for window in windows:
        spans = window.spans
        assert set(spans.how[spans.kind == Kind.COLLECTIVE].tolist()) == {How.SYNCHRONOUS | How.SINGLE}
        assert set(spans.how[spans.kind == Kind.COMPUTE].tolist()) == {-1}


@pytest.mark.shared
@pytest.mark.parametrize("case", ["xla-jax-conv-mi300-08", "xla-jax-te-fused-attn"])
def test_real_gpus_tell_which_kernels_ran_in_command_buffers(shared: Path, case: str) -> None:
    (path,) = (shared / "traces" / case).glob("*.xplane.pb")
    for window in read(path):
        assert set(window.spans.how.tolist()) <= {-1, How.COMMANDS}
