"""The rank in a file's name: taken where it is certain, and only there."""

from __future__ import annotations

import pytest

from meshscope.readers.naming import rank_in_name, series, without_rank


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank0.json", 0),
        ("rank-3.json.gz", 3),
        ("rank_12_trace.json", 12),
        ("rank 7.json", 7),
        ("rank=5.json", 5),
        ("rank[63].pt.trace.json", 63),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34),
        ("mtia_inference_rank_0.json.gz", 0),
        ("dp0_pp0_tp1_dcp0_ep1_rank9.1760000000.pt.trace.json.gz", 9),
        ("tp_rank_1_rank_5.json", 5),
        ("Rank00012.json", 12),
        ("worker3.1623143089861.pt.trace.json", 3),
        ("trace_worker-2.json", 2),
        ("host_21147.1698955063520869240.pt.trace.json", None),
        ("trace_0.json", None),
        ("0_trace.json", None),
        ("local_rank0.json", None),
        ("node_rank-1_local_rank-0.json", None),
        ("rank0_rank1.json", None),
        ("rank_non_gpu.json", None),
        ("rank_not_found.json.gz", None),
        ("frank2.json", None),
        ("rank20231102123456.json", None),
        ("coworker7.json", None),
    ],
)
def test_a_name_says_its_rank_or_leaves_doubt(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank


def test_names_of_one_run_are_equal_without_their_ranks() -> None:
    assert without_rank("run1_rank0.json") == without_rank("run1_rank15.json") != without_rank("run2_rank0.json")
    assert without_rank("host_1.11.json") == without_rank("host_2.12.json")


def test_a_series_counts_from_zero_in_one_place_without_a_gap() -> None:
    assert series(["t_1.json", "t_0.json", "t_2.json"]) == [1, 0, 2]
    assert series(["4-TP-0.json", "4-TP-1.json"]) == [0, 1]
    for names in (
        ["a.json"],
        ["t_1.json", "t_2.json"],
        ["t_0.json", "u_1.json"],
        ["t_0_0.json", "t_1_1.json"],
        ["a", "b"],
    ):
        assert series(names) is None
