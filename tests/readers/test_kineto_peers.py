"""Between which ranks a send or receive passes something: by gloo's calls, and by NCCL's kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_traces import Event, kernel, span, write_kineto

from meshscope.readers import read
from meshscope.spans import Window

WORLD = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]}


def call(name: str, at_us: float, number: Any) -> list[Event]:
    """A call and the span that carries it out, both on the thread that asks."""
    shapes = {"Input Dims": [[[4, 8]], [], [], []], "Input type": ["TensorList", "", "Scalar", "Scalar"]}
    shown = "send" if name == "send" else "recv"
    return [
        span(f"c10d::{name}", at_us, 1, **shapes, **{"Concrete Inputs": ["", "", number, "0"]}),
        span(f"gloo:{shown}", at_us + 1, 5, cat="user_annotation", **{"Input Dims": [[4, 8]], "Input type": ["float"]}),
    ]


def one(tmp_path: Path, events: list[Event], *groups: dict[str, Any], rank: int = 0) -> Window:
    about = {"backend": "gloo", "rank": rank, "world_size": 4, "pg_config": list(groups)}
    (window,) = read(write_kineto(tmp_path / "t.json", events, rank=None, distributedInfo=about))
    return window


def pairs(window: Window) -> list[tuple[str, str]]:
    spans = window.spans
    rows = [row for row in range(len(spans)) if spans.collective[row] >= 0]
    return [
        (spans.collectives[spans.collective[row]], spans.groups[spans.group[row]] if spans.group[row] >= 0 else "")
        for row in rows
    ]


def test_a_pair_goes_from_the_sender_to_the_receiver(tmp_path: Path) -> None:
    window = one(tmp_path, [*call("send", 0, "2"), *call("recv_", 10, "0")], WORLD, rank=1)
    assert pairs(window) == [("send", "ranks 1 to 2"), ("recv", "ranks 0 to 1")]
    assert [int(size) for size in window.spans.size_bytes if size > 0] == [128, 128]


def test_a_number_is_that_of_a_rank_within_its_group(tmp_path: Path) -> None:
    odd = {"pg_name": "1", "pg_desc": "pipeline", "pg_size": 2, "ranks": [1, 3]}
    window = one(tmp_path, call("send", 0, "1"), odd, rank=1)
    assert pairs(window) == [("send", "ranks 1 to 3")]


@pytest.mark.parametrize(
    ("groups", "pair"),
    [
        # By the first group number 1 is rank 1, by the second rank 3.
        ((WORLD, {"pg_name": "1", "pg_desc": "undefined", "pg_size": 2, "ranks": [0, 3]}), ""),
        ((WORLD, {"pg_name": "1", "pg_desc": "EMBEDDING_GROUP", "pg_size": 2, "ranks": [0, 3]}), "ranks 0 to 1"),
        ((WORLD, {"pg_name": "1", "pg_desc": "undefined", "pg_size": 2, "ranks": [0, 1]}), "ranks 0 to 1"),
        ((WORLD, {"pg_name": "1", "pg_desc": "undefined", "pg_size": 2, "ranks": [2, 3]}), "ranks 0 to 1"),
        ((), ""),
    ],
)
def test_a_number_that_groups_read_differently_tells_no_rank(
    tmp_path: Path, groups: tuple[dict[str, Any], ...], pair: str
) -> None:
    assert pairs(one(tmp_path, call("send", 0, "1"), *groups)) == [("send", pair)]


@pytest.mark.parametrize("number", ["", "x", "-1", "9", 1, None, "²", "9999999"])
def test_what_is_no_number_of_a_member_tells_no_rank(tmp_path: Path, number: Any) -> None:
    assert pairs(one(tmp_path, call("send", 0, number), WORLD)) == [("send", "")]


def test_a_receive_from_anybody_tells_no_rank(tmp_path: Path) -> None:
    assert pairs(one(tmp_path, call("recv_any_source_", 0, "1"), WORLD)) == [("recv", "")]


def test_a_kernel_says_the_other_rank_itself(tmp_path: Path) -> None:
    about = {"dtype": "Float", "In msg nelems": 8, "Out msg nelems": 8, "Process Group Name": "7"}
    events = [
        kernel("ncclDevKernel_SendRecv", 0, 5, **about, **{"Collective name": "send", "Dst Rank": 3}),
        kernel("ncclDevKernel_SendRecv", 5, 5, **about, **{"Collective name": "recv", "Src Rank": 1}),
        kernel("ncclDevKernel_AllReduce", 10, 5, **about, **{"Collective name": "allreduce"}),
    ]
    window = one(tmp_path, events, WORLD, rank=2)
    assert pairs(window) == [("send", "ranks 2 to 3"), ("recv", "ranks 1 to 2"), ("all_reduce", "7")]
