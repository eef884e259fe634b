"""Backward functions linked to the operators of the forward pass by the numbers that autograd gave both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_traces import Event, kernel, span, write_kineto

from meshscope.readers import read
from meshscope.spans import Window

ENGINE = "autograd::engine::evaluate_function: "
STACKS: dict[str, Any] = {"with_stack": 1, "with_modules": 1}


def op(name: str, start_us: float, dur_us: float, node: Any, *, tid: int = 1) -> Event:
    numbers = {} if node is None else {"Sequence number": node, "Fwd thread id": 0}
    return span(name, start_us, dur_us, tid=tid, **numbers)


def evaluated(function: str, start_us: float, node: Any, *, tid: int = 2) -> list[Event]:
    """The engine's evaluation of 8 µs, and the function in it, which carries the same number."""
    return [op(ENGINE + function, start_us, 8, node, tid=tid), op(function, start_us + 1, 6, node, tid=tid)]


def links(window: Window) -> dict[str, str]:
    """The forward operator of each function that was evaluated; "" where it has none."""
    spans = window.spans
    rows = [row for row in range(len(spans)) if spans.name_of(row).startswith(ENGINE)]
    told = [spans.name_of(int(spans.link[row])) if spans.link[row] >= 0 else "" for row in rows]
    return dict(zip((spans.name_of(row).removeprefix(ENGINE) for row in rows), told, strict=True))


def written(path: Path, *events: Event, **head: Any) -> Window:
    """On a GPU, so that rows stay as the file has them."""
    launch = span("cudaLaunchKernel", 1, 1, cat="cuda_runtime", correlation=5)
    device = [launch, kernel("gemm", 3, 4, correlation=5)]
    (window,) = read(write_kineto(path / "a.json", [*device, *events], **(head or STACKS)))
    return window


FORWARD = (op("aten::linear", 0, 9, 7), op("aten::t", 2, 2, 7), op("aten::addmm", 5, 3, 8))


def test_a_backward_function_belongs_to_the_operator_that_made_its_node(tmp_path: Path) -> None:
    made = written(tmp_path, *FORWARD, *evaluated("AddmmBackward0", 50, 8), *evaluated("TBackward0", 60, 7))
    # Of the two operators of number 7 the later, inner one made the node.
    assert links(made) == {"AddmmBackward0": "aten::addmm", "TBackward0": "aten::t"}


def test_a_kernel_keeps_its_launch(tmp_path: Path) -> None:
    made = written(tmp_path, *FORWARD, *evaluated("AddmmBackward0", 50, 8))
    spans = made.spans
    (row,) = (row for row in range(len(spans)) if spans.name_of(row) == "gemm")
    assert spans.name_of(int(spans.link[row])) == "cudaLaunchKernel"


@pytest.mark.parametrize(
    "why",
    [
        (op("aten::addmm", 5, 3, 9),),  # another number
        (op("aten::addmm", 5, 3, None),),
        (op("aten::addmm", 5, 3, "8"),),
        (op("aten::addmm", 90, 3, 8),),  # only afterwards
        (op("aten::addmm", 5, 3, 8), op("aten::mul", 6, 3, 8, tid=3)),  # two threads count for themselves
    ],
)
def test_what_the_numbers_do_not_tell_is_not_guessed(tmp_path: Path, why: tuple[Event, ...]) -> None:
    assert links(written(tmp_path, *why, *evaluated("AddmmBackward0", 50, 8))) == {"AddmmBackward0": ""}


def test_without_modules_nothing_is_linked(tmp_path: Path) -> None:
    made = written(tmp_path, *FORWARD, *evaluated("AddmmBackward0", 50, 8), with_stack=0)
    assert links(made) == {"AddmmBackward0": ""}


def test_on_cpu_an_operator_cut_at_its_waits_is_linked_where_it_begins(tmp_path: Path) -> None:
    forward = [op("aten::addmm", 0, 30, 8), op("c10d::wait", 10, 5, None)]
    gloo = span("gloo:all_reduce", 12, 3, cat="user_annotation", tid=9)
    path = write_kineto(tmp_path / "a.json", [*forward, gloo, *evaluated("AddmmBackward0", 50, 8)], **STACKS)
    (window,) = read(path)
    spans = window.spans
    assert [spans.name_of(row) for row in range(len(spans))].count("aten::addmm") == 2
    (row,) = (row for row in range(len(spans)) if spans.name_of(row).startswith(ENGINE))
    assert (spans.name_of(int(spans.link[row])), int(spans.link[row])) == ("aten::addmm", 0)
