"""Who comes late: the matrix, what it shows, and the rank that holds the others up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn import run, steps
from meeting import MS, later, met, run_of

from meshscope.analysis.lateness import (
    Lateness,
    Pattern,
    input_lateness,
    lateness,
    pattern,
    step_lateness,
)
from meshscope.analysis.stragglers import stragglers
from meshscope.analysis.waiting_words import lateness_words
from meshscope.kinds import Kind
from meshscope.recording.entries import StepDone
from meshscope.run import Run, open_traces
from meshscope.spans import Window, span_table

STEPS, PER_STEP = 6, 4


def even(ranks: int) -> Any:
    """Arrivals (ranks, collectives), four to a step of 400 ms."""
    return np.tile(np.arange(STEPS * PER_STEP) * 100 * MS, (ranks, 1))


def numbers() -> list[int]:
    return np.repeat(np.arange(STEPS), PER_STEP).tolist()


def bad_device() -> Any:
    """Rank 2 of four is 20 ms late to one collective of every step from step 1 on."""
    arrival = even(4)
    arrival[2, PER_STEP + 1 :: PER_STEP] += 20 * MS
    return arrival


def bad_node() -> Any:
    """Ranks 2 and 3, on the second machine, are 20 ms late to one collective of every step."""
    arrival = even(4)
    arrival[2:, 1::PER_STEP] += 20 * MS
    return arrival


def roaming() -> Any:
    """In every step another rank is 20 ms late."""
    arrival = even(4)
    for step in range(STEPS):
        arrival[(step * 3) % 4, step * PER_STEP + 1] += 20 * MS
    return arrival


def met_run(arrival: Any, hosts: tuple[str, ...] = ("a", "a", "a", "a")) -> Run:
    windows = met(arrival, MS, steps=numbers())
    return run_of([replace(one, host=host) for one, host in zip(windows, hosts, strict=True)])


def test_the_matrix_has_how_much_later_than_the_median_rank_each_came() -> None:
    found = lateness(met_run(bad_device()))
    assert (found.ranks, found.steps, found.source) == ((0, 1, 2, 3), tuple(range(STEPS)), "collectives")
    expected = np.zeros((4, STEPS))
    expected[2, 1:] = 20 * MS
    assert (found.late_ns == expected).all()


def test_one_delay_that_holds_up_several_collectives_at_once_counts_once_and_delays_in_turn_add_up() -> None:
    """Of four buckets asked for at 0, 20, 40 and 60 ms rank 1 takes up each at 100 ms or later: it is missing from 0 to
    100 ms. In the next step it is 10 ms late to each of four calls in turn."""
    arrival = np.array([[0, 20, 40, 60, 400, 500, 600, 700], [100, 100, 100, 101, 410, 510, 610, 710]]) * MS
    found = lateness(run_of(met(arrival, MS, steps=[0] * 4 + [1] * 4)))
    assert found.late_ns.tolist() == [[0, 0], [101 * MS, 40 * MS]]


def test_of_two_ranks_the_earlier_one_is_the_median() -> None:
    arrival = even(2)
    arrival[1, 1] += 20 * MS
    assert lateness(run_of(met(arrival, MS, steps=numbers()))).late_ns.sum(axis=1).tolist() == [0, 20 * MS]


def test_a_rank_that_comes_early_makes_nobody_late() -> None:
    arrival = even(4)
    arrival[1, 1] -= 30 * MS
    assert not lateness(met_run(arrival)).late_ns.any()


@pytest.mark.parametrize(("arrival", "hosts", "expected"), [
    (even(4), "aabb", Pattern("even", of=STEPS)),
    (bad_device(), "aabb", Pattern("rank", (2,), "", STEPS - 1, STEPS, since=1)),
    (bad_node(), "aabb", Pattern("node", (2, 3), "b", STEPS, STEPS, since=0)),
    (roaming(), "aabb", Pattern("roaming", (0, 1, 2, 3), "", STEPS, STEPS, since=0)),
    (bad_node(), "aaaa", Pattern("rank", (2, 3), "", STEPS, STEPS, since=0)),
], ids=["even", "device", "node", "roaming", "two ranks of one machine"])  # fmt: skip
def test_a_bad_device_a_bad_node_and_roaming_slow_input_are_told_apart(
    arrival: Any, hosts: str, expected: Pattern
) -> None:
    assert pattern(lateness(met_run(arrival, tuple(hosts)))) == expected


def test_a_node_whose_clock_is_apart_is_still_found() -> None:
    rng = np.random.default_rng(1)
    arrival = bad_node() + np.cumsum(rng.integers(0, 9, STEPS * PER_STEP)) * MS
    windows = [replace(one, host=host) for one, host in zip(met(arrival, MS, steps=numbers()), "aabb", strict=True)]
    apart = [later(one, 11_560 * MS) if one.host == "b" else one for one in windows]
    found = pattern(lateness(run_of(apart)))
    assert (found.kind, found.host, found.ranks) == ("node", "b", (2, 3))


def test_ranks_that_take_turns_within_a_step_are_even() -> None:
    arrival = even(4)
    for rank in range(4):
        arrival[rank, rank::PER_STEP] += 20 * MS
    found = met_run(arrival)
    assert pattern(lateness(found)).kind == "even"
    assert stragglers(found) == ()


def test_fewer_than_three_late_steps_make_no_pattern() -> None:
    arrival = even(4)
    arrival[2, 1] += 20 * MS
    assert pattern(lateness(met_run(arrival))) == Pattern("unknown", steps=1, of=STEPS)


def test_collectives_in_no_known_step_are_one_column() -> None:
    found = lateness(run_of(met(bad_device(), MS)))
    assert found.steps == (-1,)
    assert found.late_ns[:, 0].tolist() == [0, 0, 100 * MS, 0]


def test_nothing_is_known_of_ranks_that_were_not_matched() -> None:
    found = lateness(run_of(met(bad_device(), MS)[:1]))
    assert not found.is_known
    assert pattern(found) == Pattern("unknown")
    assert pattern(Lateness("steps")) == Pattern("unknown")


def test_the_journal_tells_who_ends_its_steps_late() -> None:
    done = [
        StepDone(
            t_ns=1, rank=rank, step=step, start_ns=step * 100 * MS, end_ns=(step * 100 + 90 + 8 * (rank == 1)) * MS
        )
        for rank in range(3)
        for step in range(4)
    ]
    found = step_lateness(run(done, ranks=3))
    assert found.late_ns.tolist() == [[0] * 4, [8 * MS] * 4, [0] * 4]
    assert pattern(found) == Pattern("rank", (1,), "", 4, 4, since=0)
    assert not step_lateness(run([entry for entry in done if entry.rank == 0])).is_known


def test_the_journal_tells_whose_input_is_slow_in_the_steps_that_all_ranks_have() -> None:
    def waited(rank: int, step: int) -> int:
        return 30 * MS if rank == step % 3 else 2 * MS

    done = [
        StepDone(t_ns=1, rank=rank, step=step, start_ns=step * 100 * MS, end_ns=(step + 1) * 100 * MS,
                 data_wait_ns=waited(rank, step))
        for rank in range(3)
        for step in range(6 - rank)
    ]  # fmt: skip
    found = input_lateness(run(done, ranks=3))
    assert found.steps == (0, 1, 2, 3)
    assert found.late_ns[:, 1].tolist() == [0, 28 * MS, 0]
    assert pattern(found).kind == "roaming"


def busy(made: Window, start_ns: list[int], end_ns: list[int]) -> Window:
    """The window with compute beside its collectives."""
    spans = made.spans
    count = len(start_ns)
    both = span_table(
        start_ns=np.concatenate((spans.start_ns, start_ns)),
        end_ns=np.concatenate((spans.end_ns, end_ns)),
        rank=made.rank,
        kind=np.concatenate((spans.kind, np.full(count, int(Kind.COMPUTE)))),
        name=np.concatenate((spans.name, np.full(count, -1))),
        collective=np.concatenate((spans.collective, np.full(count, -1))),
        step=np.concatenate((spans.step, np.full(count, -1))),
        names=spans.names,
        collectives=spans.collectives,
    )
    return replace(made, spans=both)


def test_a_straggler_is_named_with_its_cost_since_when_and_what_it_does_instead() -> None:
    (found,) = stragglers(met_run(bad_device()))
    assert (found.rank, found.last, found.calls) == (2, 5, 24)
    assert (found.since, found.late_steps, found.steps) == (1, 5, STEPS)
    assert found.charged_ns == 3 * 100 * MS
    assert found.cost_ns == 100 * MS
    assert found.of_ns == 2301 * MS
    assert found.cost_frac == pytest.approx(100 / 2301)
    assert (found.phase, found.phase_ns) == ("idle", 100 * MS)


def test_a_straggler_that_computes_longer_is_told_apart_from_one_that_idles() -> None:
    arrival = bad_device()
    windows = []
    for one, row in zip(met(arrival, MS, steps=numbers()), arrival, strict=True):
        ends = row[1:].tolist()
        begins = [
            end - (50 * MS if end == base else 70 * MS) for end, base in zip(ends, even(4)[0][1:].tolist(), strict=True)
        ]
        windows.append(busy(one, begins, ends))
    (found,) = stragglers(run_of(windows))
    assert (found.rank, found.phase, found.phase_ns) == (2, "compute", 100 * MS)


def test_a_straggler_that_waits_for_its_batches_is_told_by_the_journal() -> None:
    done = [
        StepDone(t_ns=1, rank=rank, step=step, start_ns=step * 400 * MS, end_ns=(step + 1) * 400 * MS,
                 data_wait_ns=20 * MS if rank == 2 and step else 0)
        for rank in range(4)
        for step in range(STEPS)
    ]  # fmt: skip
    here = run(done, ranks=4, windows=met(bad_device(), MS, steps=numbers()))
    (found,) = stragglers(here)
    assert (found.rank, found.phase, found.phase_ns) == (2, "data", 100 * MS)


def test_a_run_whose_ranks_come_together_has_no_straggler() -> None:
    rng = np.random.default_rng(2)
    arrival = even(4) + rng.integers(0, MS, size=(4, STEPS * PER_STEP))
    assert stragglers(met_run(arrival)) == ()


def test_steps_alone_name_no_straggler() -> None:
    assert stragglers(run(steps([9.0] * 9))) == ()


@pytest.mark.shared
def test_the_stragglers_of_real_runs(shared: Path) -> None:
    (megatron,) = open_traces([shared / "traces" / "mr-megatron-tp8-a100"]).runs
    assert [(found.rank, found.phase) for found in stragglers(megatron)] == [(0, "idle"), (6, "idle")]
    words = lateness_words(lateness(megatron), stragglers(megatron), megatron)
    assert words.startswith("2 stragglers (0, 6): rank 0 came last to ")
    assert words.endswith(", since step 3")
    (torchrec,) = open_traces([shared / "traces" / "mr-torchrec-sst4-a2a"]).runs
    (found,) = stragglers(torchrec)
    assert (found.rank, found.since, found.late_steps, found.phase) == (2, 4, 3, "idle")
    assert found.cost_ns > 3_000 * MS
    assert pattern(lateness(torchrec)) == Pattern("rank", (2,), "", 3, 3, since=4)
