"""Kernels that carry nothing themselves, told by the host's annotation around their launch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_traces import kernel, span, write_kineto

from meshscope.readers import read
from meshscope.spans import SpanTable


def annotation(name: str, start_us: float, dims: list[Any], dtype: str = "c10::Half", tid: int = 1) -> dict[str, Any]:
    return span(name, start_us, 10, cat="user_annotation", tid=tid, **{"Input Dims": dims, "Input type": [dtype]})


def launch(start_us: float, correlation: int, tid: int = 1) -> dict[str, Any]:
    return span("cudaLaunchKernel", start_us, 1, cat="cuda_runtime", tid=tid, correlation=correlation)


def collectives(path: Path, events: list[Any]) -> list[tuple[str, int]]:
    (window,) = read(write_kineto(path / "t.json", events))
    spans: SpanTable = window.spans
    rows = [row for row in range(len(spans)) if spans.kind[row] == 2]
    return [(spans.collectives[spans.collective[row]], int(spans.size_bytes[row])) for row in rows]


def test_a_kernel_has_the_size_of_the_call_around_its_launch(tmp_path: Path) -> None:
    events = [
        annotation("nccl:all_reduce", 0, [[4, 8]]),
        launch(2, 1),
        annotation("nccl:all_reduce", 20, [[16]], "float"),
        launch(22, 2),
        launch(40, 3),
        annotation("nccl:all_reduce", 38, [[999]], tid=5),
        *(kernel("ncclKernel_AllReduce", 50 + number, 1, correlation=number) for number in (1, 2, 3)),
    ]
    assert collectives(tmp_path, events) == [("all_reduce", 64), ("all_reduce", 64), ("all_reduce", -1)]


@pytest.mark.parametrize(("kernel_name", "called", "expected"), [
    ("ncclKernel_SendRecv", "nccl:all_to_all", ("all_to_all", 16)),
    ("ncclDevKernel_Generic", "nccl:_reduce_scatter_base", ("reduce_scatter", 16)),
    ("ncclKernel_AllGather", "nccl:_all_gather_base", ("all_gather", -1)),
    ("ncclKernel_SendRecv", "nccl:all_reduce", ("send_recv", -1)),
    ("ncclKernel_AllReduce", "nccl:broadcast", ("all_reduce", -1)),
], ids=["exchange", "generic", "input is a part", "contradiction", "another"])  # fmt: skip
def test_an_annotation_tells_what_the_kernel_leaves_open_and_nothing_that_contradicts_it(
    tmp_path: Path, kernel_name: str, called: str, expected: tuple[str, int]
) -> None:
    events = [annotation(called, 0, [[8]]), launch(2, 1), kernel(kernel_name, 50, 1, correlation=1)]
    assert collectives(tmp_path, events) == [expected]


def test_kernels_that_share_a_call_share_its_bytes_in_a_way_that_is_not_told(tmp_path: Path) -> None:
    events = [annotation("nccl:all_reduce", 0, [[8]]), launch(2, 1), launch(4, 2)]
    events += [kernel("ncclKernel_AllReduce", 50 + number, 1, correlation=number) for number in (1, 2)]
    assert collectives(tmp_path, events) == [("all_reduce", -1), ("all_reduce", -1)]


def test_what_a_kernel_says_itself_stands(tmp_path: Path) -> None:
    own = {"Collective name": "allreduce", "In msg nelems": 3, "Out msg nelems": 3, "dtype": "Float"}
    events = [annotation("nccl:all_reduce", 0, [[8]]), launch(2, 1), kernel("nccl", 50, 1, correlation=1, **own)]
    assert collectives(tmp_path, events) == [("all_reduce", 12)]
