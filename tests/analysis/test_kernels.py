"""Which names were taken for what, and by which rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from drawn import run, timeline

from meshscope import config
from meshscope.analysis.kernels import KernelName, kernels
from meshscope.kinds import Kind
from meshscope.spans import span_table


@pytest.fixture
def _settings() -> Iterator[None]:
    before = config.current()
    yield
    config.use(before)


def table(names: list[str], kinds: list[Kind], starts: list[int], ends: list[int]) -> dict[str, object]:
    distinct = tuple(dict.fromkeys(names))
    return {
        "spans": span_table(
            start_ns=starts,
            end_ns=ends,
            name=[distinct.index(name) for name in names],
            kind=[int(kind) for kind in kinds],
            rule=[0 if kind != Kind.COPY else -1 for kind in kinds],
            names=distinct,
            rules=("the rule",),
        )
    }


def test_names_of_one_rule_are_one_group_with_the_time_in_which_any_ran() -> None:
    names = ["a", "b", "a", "copy"]
    kinds = [Kind.COMPUTE, Kind.COMPUTE, Kind.COMPUTE, Kind.COPY]
    ((rank),) = kernels(timeline("0 compute #", **table(names, kinds, [0, 5, 8, 30], [10, 15, 12, 40])))
    compute, copy = rank.groups
    assert (compute.kind, compute.rule, compute.count, compute.busy_ns) == ("compute", "the rule", 3, 15)
    assert compute.names == (KernelName("a", 2, 12), KernelName("b", 1, 10))
    assert (copy.kind, copy.rule, copy.busy_ns) == ("copy", "the trace's own category", 10)
    assert rank.busy_ns == 25


def test_windows_of_a_rank_add_up() -> None:
    once = timeline("0 compute ##").windows
    later = timeline("0 compute ###").windows
    (rank,) = kernels(run(windows=(*once, *later)))
    (group,) = rank.groups
    assert (group.count, group.busy_ns, rank.busy_ns) == (2, 50, 50)


def test_what_is_no_work_and_no_rule_took_is_left_out() -> None:
    (rank,) = kernels(timeline("0 host ##\n0 other ##"))
    assert rank.groups == ()


@pytest.mark.usefixtures("_settings")
def test_a_users_rule_is_cited_and_what_it_takes_for_nothing_is_still_listed(tmp_path: Path) -> None:
    from meshscope.run import open_traces

    path = tmp_path / "rank0.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "spin_wait", "ts": 1, "dur": 5, "pid": 0, "tid": 7},'
        '{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 9, "dur": 5, "pid": 0, "tid": 7}]}'
    )
    config.use(config.Settings((config.KernelRule("spin", "other", "", "our spin lock"),)))
    (rank,) = kernels(open_traces([path]).runs[0])
    assert [(group.kind, group.rule, group.names[0].name) for group in rank.groups] == [
        ("compute", "everything else", "gemm"),
        ("other", "our spin lock", "spin_wait"),
    ]
    assert rank.busy_ns == 5000
