"""Process groups and whole sizes of gloo's collectives: what Kineto's own spans do not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_traces import UNIX_NS, Event, span, write_kineto

from meshscope.readers import read
from meshscope.spans import Kind, Window

GROUPS = [{"pg_name": "1", "pg_size": 4, "ranks": [0, 2, 4, 6]}, {"pg_name": "3", "pg_size": 2, "ranks": [0, 1]}]


def call(at_us: float, name: str, *dims: Any) -> Event:
    """It takes 10 µs to be asked for."""
    return span(f"c10d::{name}", at_us, 10, **{"Input Dims": list(dims), "Input type": ["float"] * len(dims)})


def gloo(at_us: float, name: str, elements: int) -> Event:
    about = {"Input Dims": [[elements]], "Input type": ["float"]}
    return span(f"gloo:{name}", at_us, 50, cat="user_annotation", tid=8, **about)


EVENTS = [
    call(0, "allreduce_", [[100]]),
    gloo(20, "all_reduce", 100),
    call(100, "_allgather_base_", [400], [100]),
    gloo(120, "all_gather", 100),
    call(200, "_reduce_scatter_base_", [50], [100]),
    gloo(220, "all_reduce", 100),
]
CALLS = [[UNIX_NS + at, what, group, number] for at, what, group, number in (
    (3_000, "all_reduce", "3", 7), (104_000, "all_gather", "1", 2), (205_000, "all_reduce", "3", 8),
)]  # fmt: skip


def read_one(tmp_path: Path, events: list[Event], groups: list[Any] = GROUPS, **around: Any) -> Window:
    about = {"backend": "gloo", "rank": 0, "world_size": 8, "pg_config": groups}
    (window,) = read(write_kineto(tmp_path / "t.json", events, rank=None, distributedInfo=about, **around))
    return window


def told(window: Window) -> list[tuple[str, str, int, int]]:
    """Of each collective in order: what it is, its group, its number and its bytes."""
    spans = window.spans
    return [
        (
            spans.collectives[spans.collective[row]],
            spans.groups[spans.group[row]] if spans.group[row] >= 0 else "",
            int(spans.sequence[row]),
            int(spans.size_bytes[row]),
        )
        for row in range(len(spans))
        if spans.kind[row] == Kind.COLLECTIVE
    ]


def test_a_call_is_of_the_group_that_the_flight_recorder_took_down_while_it_was_made(tmp_path: Path) -> None:
    assert told(read_one(tmp_path, EVENTS, meshscopeCalls=CALLS)) == [
        ("all_reduce", "3", 7, 400),
        ("all_gather", "1", 2, 1600),
        ("reduce_scatter", "3", 8, 400),
    ]


@pytest.mark.parametrize(
    "calls",
    [
        CALLS[:2],
        [CALLS[0], CALLS[1], [CALLS[2][0] + 10**9, *CALLS[2][1:]]],
        [],
        "no list",
        [["now", "all_reduce", "3", 7], [1], None],
        [[2**80, "all_reduce", "3", 7]],
    ],
    ids=["one is missing", "one is of another time", "none", "no list", "no entries", "huge"],
)
def test_where_calls_and_entries_do_not_fit_no_group_is_told(tmp_path: Path, calls: Any) -> None:
    assert {group for _, group, _, _ in told(read_one(tmp_path, EVENTS, meshscopeCalls=calls))} == {""}


def test_a_send_of_which_no_recorder_tells_leaves_the_other_calls_their_groups(tmp_path: Path) -> None:
    sent = [call(50, "send", [[9]], [], []), gloo(62, "send", 9)]
    assert told(read_one(tmp_path, [*EVENTS, *sent], meshscopeCalls=CALLS)) == [
        ("all_reduce", "3", 7, 400),
        ("send", "", -1, 36),
        ("all_gather", "1", 2, 1600),
        ("reduce_scatter", "3", 8, 400),
    ]


def test_two_calls_that_would_share_an_entry_tell_no_group(tmp_path: Path) -> None:
    near = [call(0, "allreduce_", [[9]]), call(12, "allreduce_", [[9]]), gloo(30, "all_reduce", 9),
            gloo(90, "all_reduce", 9)]  # fmt: skip
    assert {group for _, group, _, _ in told(read_one(tmp_path, near, meshscopeCalls=CALLS[:1]))} == {""}


LISTED = [call(0, "allgather_", [], [[25]]), gloo(20, "all_gather", 25)]


def test_an_all_gather_into_one_tensor_per_rank_is_as_large_as_all_of_them(tmp_path: Path) -> None:
    """Kineto shows the rank's own tensor alone: 25 floats, of four ranks."""
    calls = [[UNIX_NS + 1_000, "all_gather", "1", 1]]
    assert told(read_one(tmp_path, LISTED, meshscopeCalls=calls)) == [("all_gather", "1", 1, 400)]
    assert told(read_one(tmp_path, LISTED, GROUPS[:1])) == [("all_gather", "", -1, 400)], "the only group there is"


def test_without_its_ranks_the_size_of_such_an_all_gather_is_not_known(tmp_path: Path) -> None:
    assert told(read_one(tmp_path, LISTED)) == [("all_gather", "", -1, -1)]
    assert told(read_one(tmp_path, LISTED, [])) == [("all_gather", "", -1, -1)]
