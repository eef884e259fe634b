"""Which collectives stand in one queue, and in which order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from meeting import MS, groups, run_of, window

from meshscope.analysis.calls import Queue, calls, devices_of
from meshscope.analysis.waiting import waiting
from meshscope.kinds import Kind
from meshscope.spans import ProcessGroup, Window, span_table

FOUR = groups([0, 1, 2, 3])


def gloo(rank: int, starts_ms: tuple[int, int], end_ms: int) -> Window:
    """Two calls at 0 and 1 ms, of 8 and 16 bytes, taken by two threads of gloo at once or nearly so."""
    spans = span_table(
        start_ns=[0, MS, *(start * MS for start in starts_ms)],
        end_ns=[1, MS + 1, end_ms * MS, end_ms * MS],
        rank=rank,
        kind=[int(Kind.LAUNCH)] * 2 + [int(Kind.COLLECTIVE)] * 2,
        link=[-1, -1, 0, 1],
        name=[0, 0, 1, 1],
        names=("c10d::allreduce_", "gloo:all_reduce"),
        collective=[-1, -1, 0, 0],
        collectives=("all_reduce",),
        size_bytes=[-1, -1, 8, 16],
        lane=[0, 0, 1, 2],
    )
    made = window(rank, [0], [1], device_kind="cpu", world=2, host="node", process_groups=groups([0, 1]))
    return replace(made, spans=spans, start_ns=0, end_ns=end_ms * MS)


def test_calls_of_gloo_are_in_the_order_of_the_calls_not_of_the_threads() -> None:
    one = gloo(0, (5, 4), 10)
    (found,) = calls(one).values()
    assert found.size_bytes.tolist() == [8, 16]
    waits = waiting(run_of([one, gloo(1, (6, 7), 10)]))
    assert {rank.rank: rank.wait_ns for rank in waits.ranks} == {0: 4 * MS, 1: 0}


def test_a_gloo_span_without_its_call_has_no_size_to_compare() -> None:
    one = gloo(0, (4, 5), 10)
    lost = replace(one, spans=replace(one.spans, link=np.array([-1, -1, -1, 1])))
    (found,) = calls(lost).values()
    assert found.size_bytes.tolist() == [-1, 16]


@pytest.mark.parametrize(("name", "declared", "expected"), [
    ("0", FOUR, Queue("0", 4, (0, 1, 2, 3), "")),
    ("other", FOUR, Queue("other", 0, (), "")),
    ("", FOUR, Queue("", 4, (0, 1, 2, 3), "")),
    ("", (*FOUR, *groups([0, 1])), Queue("", 0, (), "all_reduce")),
    ("", (), Queue("", 0, (), "all_reduce")),
    ("tp", (ProcessGroup("tp", 64),), Queue("tp", 64, (), "")),
], ids=["declared", "undeclared", "the only one", "one of several", "none", "too long to list"])  # fmt: skip
def test_a_queue_is_a_process_group_as_far_as_the_trace_tells_it(
    name: str, declared: tuple[ProcessGroup, ...], expected: Queue
) -> None:
    made = window(0, [0], [9], process_groups=declared)
    if name:
        made = replace(made, spans=replace(made.spans, group=np.zeros(1, np.int32), groups=(name,)))
    assert list(calls(made)) == [expected]


def test_an_xla_queue_is_an_instruction_on_the_devices_that_its_group_names() -> None:
    made = window(0, [0, 5], [3, 9], names=["all-reduce.1", "all-reduce.2"], framework="jax")
    spans = replace(made.spans, collectives=("all_reduce", "all_reduce"), group=np.zeros(2, np.int32),
                    groups=("devices 0, 1, 2048, 2049",))  # fmt: skip
    assert set(calls(replace(made, spans=spans))) == {
        Queue("devices 0, 1, 2048, 2049", 4, (), name) for name in ("all-reduce.1", "all-reduce.2")
    }


@pytest.mark.parametrize(
    ("group", "size"),
    [("devices 0, 1, 2048", 3), ("devices 5", 1), ("one of 4 groups of 2 devices", 2), ("0", 0), ("", 0)],
)
def test_the_name_of_an_xla_group_says_how_many_devices_are_in_it(group: str, size: int) -> None:
    assert devices_of(group) == size


def test_an_exchange_is_in_the_queue_of_all_to_alls_since_the_kernel_alone_does_not_tell() -> None:
    made = window(0, [0, 5, 9], [3, 9, 12], names=["send_recv", "all_to_all", "all_reduce"])
    found = calls(made)
    assert {queue.part: len(some) for queue, some in found.items()} == {"all_to_all": 2, "all_reduce": 1}
