"""Which names take the time, worked by hand."""

from __future__ import annotations

import pytest
from drawn import run
from hypothesis import given
from hypothesis import strategies as st
from made_spans import Made, collective, kernel, window

from meshscope.analysis.operations import operations
from meshscope.kinds import Kind


def test_kernels_are_added_up_over_ranks_by_name() -> None:
    first = window([kernel(0, 10, name="gemm"), kernel(10, 40, name="gemm"), kernel(40, 50, name="norm")])
    second = window([kernel(0, 30, name="norm"), kernel(30, 50, name="gemm")], rank=1)
    gemm, norm = operations(run(windows=[first, second]))
    assert (gemm.name, gemm.count, gemm.ranks, gemm.total_ns, gemm.max_ns) == ("gemm", 3, 2, 60, 30)
    assert (gemm.mean_ns, gemm.median_ns, gemm.frac) == (20, 20, 0.6)
    assert (norm.total_ns, norm.frac) == (40, 0.4)


def test_kernels_at_once_are_added_up_and_not_united() -> None:
    found = operations(run(windows=[window([kernel(0, 10, name="a"), kernel(0, 10, name="b", lane="stream 8")])]))
    assert [one.frac for one in found] == [0.5, 0.5]


def test_an_operator_on_cpu_counts_for_what_it_does_itself() -> None:
    nested = [kernel(0, 100, name="aten::linear", lane="main"), kernel(20, 90, name="aten::addmm", lane="main")]
    found = {one.name: one.total_ns for one in operations(run(windows=[window(nested, device_kind="cpu")]))}
    assert found == {"aten::linear": 30, "aten::addmm": 70}


def test_an_operator_cut_at_the_wait_in_it_is_one_call() -> None:
    cut = [
        kernel(0, 40, name="aten::sum", lane="main"),
        Made(Kind.WAIT, "main", 40, 60, "_c10d_functional::wait_tensor"),
        kernel(60, 70, name="aten::sum", lane="main"),
        kernel(80, 90, name="aten::sum", lane="main"),
    ]
    (found,) = operations(run(windows=[window(cut, device_kind="cpu")]))
    assert (found.count, found.total_ns, found.max_ns) == (2, 60, 50)


def test_a_wait_without_length_cuts_nothing() -> None:
    spans = [kernel(0, 40, lane="main"), Made(Kind.WAIT, "main", 40, 40, "c10d::wait"), kernel(40, 70, lane="main")]
    (found,) = operations(run(windows=[window(spans, device_kind="cpu")]))
    assert (found.count, found.total_ns) == (2, 70)


def test_a_name_of_two_kinds_is_two_rows() -> None:
    same = window([kernel(0, 10, name="x"), Made(Kind.COPY, "stream 7", 10, 15, "x")])
    assert [(one.kind, one.total_ns) for one in operations(run(windows=[same]))] == [
        ("compute", 10),
        ("copy", 5),
    ]


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 20), st.sampled_from("abc")), min_size=1, max_size=20))
def test_shares_add_up_to_all_device_work(drawn: list[tuple[int, int, str]]) -> None:
    spans = [kernel(start, start + length, name=name) for start, length, name in drawn]
    found = operations(run(windows=[window([*spans, collective(0, 5)])]))
    assert sum(one.count for one in found) == len(drawn) + 1
    assert sum(one.total_ns for one in found) == sum(length for _, length, _ in drawn) + 5
    assert sum(one.frac for one in found) == pytest.approx(1)
