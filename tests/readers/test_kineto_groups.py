"""The machine and the process groups that a Kineto file declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_traces import kernel, write_kineto

from meshscope.readers import read
from meshscope.readers.kineto_groups import host, process_groups
from meshscope.spans import ProcessGroup


def declared(*entries: Any) -> dict[str, Any]:
    return {"distributedInfo": {"rank": 0, "world_size": 4, "pg_config": list(entries)}}


def test_a_window_knows_its_machine_and_its_groups(tmp_path: Path) -> None:
    about = declared({"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]})
    (window,) = read(write_kineto(tmp_path / "t.json", [kernel("gemm", 0, 5)], rank=None, host_name="node7", **about))
    assert window.host == "node7"
    assert window.process_groups == (ProcessGroup("0", 4, (0, 1, 2, 3)),)
    assert window.shifted(5).process_groups == window.process_groups


def test_a_list_of_ranks_that_was_cut_short_is_left_out() -> None:
    assert process_groups(declared({"pg_name": "tp", "pg_size": 64, "ranks": [0, 1, 2]})) == (ProcessGroup("tp", 64),)


def test_a_group_without_a_size_has_that_of_its_ranks() -> None:
    assert process_groups(declared({"pg_name": 3, "ranks": [2, 0]})) == (ProcessGroup("3", 2, (0, 2)),)


@pytest.mark.parametrize(
    "metadata",
    [
        {}, {"distributedInfo": None}, {"distributedInfo": {"pg_config": {"0": {}}}},
        declared(None, "x", {"ranks": [0]}),
    ],
)  # fmt: skip
def test_a_head_without_groups_has_none(metadata: dict[str, Any]) -> None:
    assert process_groups(metadata) == ()


@pytest.mark.parametrize("entry", [
    {"pg_name": "0", "pg_size": "many", "ranks": "all"}, {"pg_name": "0", "pg_size": -1, "ranks": [True, 2.5, -3]},
])  # fmt: skip
def test_what_is_no_number_of_ranks_is_unknown(entry: dict[str, Any]) -> None:
    assert process_groups(declared(entry)) == (ProcessGroup("0", 0),)


def test_a_machine_without_a_name_is_unknown() -> None:
    assert (host({}), host({"host_name": 5}), host({"host_name": "a"})) == ("", "", "a")


def collective(at_us: int, group: str, ranks: Any) -> Any:
    told = {"Collective name": "allreduce", "Process Group Name": group, "Process Group Ranks": ranks, "Seq": 1}
    return kernel("ncclDevKernel_AllReduce_Sum_f32", at_us, 5, stream=20, **told)


def test_without_a_declaration_a_group_has_the_ranks_that_its_kernels_name(tmp_path: Path) -> None:
    events = [collective(0, "tp", "[0, 2]"), collective(10, "dp", "[0, 1]"), collective(20, "tp", "[0, 2]")]
    (window,) = read(write_kineto(tmp_path / "t.json", events))
    assert window.process_groups == (ProcessGroup("tp", 2, (0, 2)), ProcessGroup("dp", 2, (0, 1)))


@pytest.mark.parametrize("ranks", ["[0, 1, ...]", "", "[]", None, 7, "[0, x]"])
def test_ranks_of_a_kernel_that_are_cut_short_or_none_declare_nothing(tmp_path: Path, ranks: Any) -> None:
    (window,) = read(write_kineto(tmp_path / "t.json", [collective(0, "tp", ranks)]))
    assert window.process_groups == ()


def test_what_the_head_declares_stands_where_a_kernel_says_other_ranks() -> None:
    head = declared({"pg_name": "tp", "pg_size": 4, "ranks": []}, {"pg_name": "dp", "pg_size": 2, "ranks": []})
    found = process_groups(head, {"tp": "[0, 1]", "dp": "[0, 1]"})
    assert found == (ProcessGroup("tp", 4), ProcessGroup("dp", 2, (0, 1)))
