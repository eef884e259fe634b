"""Parts of a profiled step: worked by hand, and always adding up to it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from drawn import run, timeline
from hypothesis import given, settings
from hypothesis import strategies as st
from stepped import MS, Step, profiled

from meshscope.analysis.comparison import comparison
from meshscope.analysis.parts import per_windows
from meshscope.analysis.step_split import step_split
from meshscope.run import Run


def test_the_parts_of_one_step_add_up_to_it() -> None:
    found = step_split(timeline("""
        0 step        aaaaaaaaaaaa
        0 compute     ######......
        0 all_reduce  ....####....
        0 copy        .......##...
    """))  # fmt: skip
    assert found is not None
    # One rank alone: whom it waits for is not there to be seen.
    assert found.parts_ns == {"compute": 40, "hidden": 20, "exposed": 20, "copy": 10, "idle": 30}
    assert (found.span_ns, found.steps, found.pairs, found.tells_waiting) == (120, 1, 1, False)
    assert all(math.isnan(spread) for spread in found.spread_ns.values())


def test_waiting_for_a_late_rank_is_told_apart_from_transfer() -> None:
    found = step_split(profiled("ddp", 100, [Step(compute=40, exposed=30, idle=10, late=20)] * 3))
    assert found is not None
    # Rank 0 computes 40, waits 20 and transfers 10; rank 1 computes 60 and transfers 10: the mean of the two.
    assert {name: ns / MS for name, ns in found.parts_ns.items()} == {
        "compute": 50, "hidden": 0, "waiting": 10, "transfer": 10, "copy": 0, "idle": 10,
    }  # fmt: skip
    assert found.exposed_ns == 20 * MS
    assert (found.steps, found.pairs) == (3, 6)


def test_hidden_communication_is_computing_too() -> None:
    found = step_split(profiled("ddp", 100, [Step(compute=40, hidden=15, exposed=5, copied=3, idle=7)] * 3))
    assert found is not None
    assert {name: ns / MS for name, ns in found.parts_ns.items()} == {
        "compute": 40, "hidden": 15, "waiting": 0, "transfer": 5, "copy": 3, "idle": 7,
    }  # fmt: skip
    assert found.computing_ns == 55 * MS
    assert found.span_ns == 70 * MS


def test_a_spread_is_half_the_interquartile_range_over_steps() -> None:
    found = step_split(profiled("ddp", 100, [Step(compute=ms, idle=10) for ms in (40, 50, 80)]))
    assert found is not None
    # Quartiles of 40, 50, 80 are 45 and 65.
    assert found.spread_ns["compute"] == found.spread_ns["computing"] == found.spread_ns["span"] == 10 * MS
    assert found.spread_ns["idle"] == 0


def test_without_communication_nothing_of_it_is_untold() -> None:
    found = step_split(profiled("single", 100, [Step(compute=40, idle=10)] * 3))
    assert found is not None
    assert found.tells_waiting
    assert (found.parts_ns["waiting"], found.parts_ns["transfer"], found.exposed_ns) == (0, 0, 0)


def test_without_a_complete_step_there_is_no_split() -> None:
    assert step_split(run(strategy="ddp")) is None
    assert step_split(timeline("0 compute ####..")) is None


lengths = st.integers(1, 400).map(lambda tenths: tenths / 10)
made = st.builds(Step, compute=lengths, exposed=lengths, idle=lengths, hidden=lengths, copied=lengths,
                 late=st.just(0.0))  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(st.lists(made, min_size=1, max_size=4))
def test_parts_add_up_and_are_those_of_the_comparison(some: list[Step]) -> None:
    one = profiled("ddp", 100, some)
    found, (row,) = step_split(one), comparison((one,)).rows
    assert found is not None
    assert row.per_step is not None
    assert sum(found.parts_ns.values()) == found.span_ns == row.per_step.span_ns
    assert found.parts_ns["idle"] == row.per_step.idle_ns
    assert found.computing_ns == row.per_step.compute_ns
    assert found.exposed_ns == row.per_step.exposed_ns
    assert found.span_ns == pytest.approx(sum(one.span for one in some) / len(some) * MS, abs=5)


def test_what_windows_alone_answer_is_not_asked_again_until_there_are_others() -> None:
    asked: list[Run] = []

    def count(run: Run) -> int:
        asked.append(run)
        return len(run.windows)

    kept = per_windows(count)
    first, other = profiled("ddp", 100, [Step(compute=40)] * 3), profiled("ddp", 100, [Step(compute=50)] * 3)
    assert [kept(first), kept(replace(first, now_ns=5))] == [2, 2]
    assert len(asked) == 1
    assert kept(replace(first, experiment=profiled("fsdp", 100).experiment)) == 2
    assert len(asked) == 2
    assert kept(replace(first, windows=(*first.windows, *other.windows))) == 4
    assert len(asked) == 3
    assert kept(run(strategy="ddp")) == kept(run(strategy="ddp")) == 0
    assert len(asked) == 5
