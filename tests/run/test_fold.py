"""Folding entries: any order, any writers, any time; the same Run."""

from __future__ import annotations

import math
import random
from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from made_recordings import experiment

from meshscope.recording.entries import (
    Checked,
    Compiled,
    Ended,
    Entry,
    FlightWritten,
    Log,
    MemoryMeasured,
    Phase,
    RankEnded,
    RankStarted,
    Sampled,
    SensorFailed,
    StacksTaken,
    StepDone,
    TraceWritten,
    WindowAsked,
)
from meshscope.run import Run, fold
from meshscope.run.columns import StepColumns
from meshscope.run.ledger import Ledger
from meshscope.run.times import Times
from meshscope.samples import STEP_COLUMNS

times = st.integers(0, 20)
ranks = st.integers(0, 3)
words = st.sampled_from(["a", "b", "c"])
sizes = st.integers(-1, 5)

entries = st.one_of(
    st.builds(Phase, t_ns=times, rank=ranks, phase=words, detail=words),
    st.builds(RankStarted, t_ns=times, rank=ranks, device=ranks, device_name=words, device_kind=words, pid=sizes),
    st.builds(
        StepDone, t_ns=times, rank=ranks, step=times, start_ns=times, end_ns=times, tokens=sizes,
        loss=st.one_of(st.none(), st.floats(0, 9)), is_profiled=st.booleans(),
    ),
    st.builds(WindowAsked, t_ns=times, first_step=times, end_step=times, reason=words),
    st.builds(TraceWritten, t_ns=times, rank=ranks, path=words, format=words, first_step=times, end_step=times,
              size_bytes=sizes),
    st.builds(Compiled, t_ns=times, rank=ranks, name=words, stage=words, duration_ns=times),
    st.builds(MemoryMeasured, t_ns=times, rank=ranks, device=ranks, step=times, source=words,
              categories=st.dictionaries(words, sizes), how=st.just({})),
    st.builds(Checked, t_ns=times, rank=ranks, step=times, parameters=st.floats(0, 9)),
    st.builds(
        StacksTaken, t_ns=times, rank=ranks, path=words, threads=st.tuples(st.tuples(words)), said=st.tuples(words)
    ),
    st.builds(FlightWritten, t_ns=times, rank=ranks, path=words, newest=st.dictionaries(words, sizes)),
    st.builds(Sampled, t_ns=times, device=words, values=st.dictionaries(words, st.floats(0, 1))),
    st.builds(SensorFailed, t_ns=times, device=words, field=words, why=words),
    st.builds(Log, t_ns=times, level=words, text=words, rank=ranks),
    st.builds(RankEnded, t_ns=times, rank=ranks, exit_code=sizes),
    st.builds(Ended, t_ns=times, outcome=words),
)  # fmt: skip


def plain(run: Run) -> dict[str, Any]:
    """A Run as values that can be compared."""
    found: dict[str, Any] = {f.name: getattr(run, f.name) for f in fields(run) if f.name not in ("steps", "samples")}
    found["steps"] = {name: _listed(getattr(run.steps, name)) for name in STEP_COLUMNS}
    samples = run.samples
    found["samples"] = {name: _listed(getattr(samples, name)) for name in ("time_ns", "device", "field", "value")}
    return found | {"names": (samples.devices, samples.fields)}


def _listed(column: Any) -> list[Any]:
    return [None if isinstance(value, float) and math.isnan(value) else value for value in np.asarray(column).tolist()]


@given(st.lists(entries, max_size=25), st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_order_of_arrival_does_not_matter(drawn: list[Entry], shuffle: random.Random, writers: int) -> None:
    shuffled = list(drawn)
    shuffle.shuffle(shuffled)
    expected = plain(fold(experiment(), drawn))
    assert plain(fold(experiment(), shuffled)) == expected
    ledger = Ledger(experiment(), "")
    for writer in range(writers):
        ledger.add(shuffled[writer::writers])
    last_ns = max((entry.t_ns for entry in drawn), default=0)
    assert plain(ledger.run(last_ns, last_entry_ns=last_ns)) == expected


@given(st.lists(entries, max_size=25), times)
def test_the_run_at_a_time_knows_what_was_written_by_then_and_nothing_else(drawn: list[Entry], now_ns: int) -> None:
    seen = [entry for entry in drawn if entry.t_ns <= now_ns]
    assert plain(fold(experiment(), drawn, now_ns=now_ns)) == plain(fold(experiment(), seen, now_ns=now_ns))
    ledger = Ledger(experiment(), "")
    ledger.add(drawn)
    last_ns = max((entry.t_ns for entry in seen), default=0)
    assert plain(ledger.run(now_ns, last_entry_ns=last_ns)) == plain(fold(experiment(), seen, now_ns=now_ns))


def test_a_missing_loss_is_not_a_number_and_not_zero() -> None:
    run = fold(experiment(), [StepDone(t_ns=1, rank=0, step=0, start_ns=0, end_ns=1)])
    assert np.isnan(run.steps.loss).tolist() == [True]
    assert run.steps.tokens.tolist() == [-1]


def test_steps_come_by_rank_then_number() -> None:
    steps = [StepDone(t_ns=0, rank=rank, step=step, start_ns=0, end_ns=1) for rank, step in ((1, 0), (0, 1), (0, 0))]
    table = fold(experiment(), steps).steps
    assert list(zip(table.rank.tolist(), table.step.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 0)]


def test_no_entries_are_an_empty_run() -> None:
    run = fold(experiment(), [])
    assert (len(run.steps), len(run.samples.time_ns), run.ended, run.last_entry_ns) == (0, 0, None, 0)


@given(st.lists(st.lists(st.tuples(ranks, times, times), max_size=6), max_size=5))
def test_steps_that_come_bit_by_bit_stand_where_they_would_had_they_come_at_once(
    bits: list[list[tuple[int, int, int]]],
) -> None:
    entries = [[StepDone(t_ns=t, rank=r, step=n, start_ns=0, end_ns=t) for r, n, t in bit] for bit in bits]
    slowly, at_once = StepColumns(), StepColumns()
    for bit in entries:
        slowly.add(bit)
        slowly.table(10)
    at_once.add(entry for bit in entries for entry in bit)
    for now_ns in (10, 100):
        found, whole = slowly.table(now_ns), at_once.table(now_ns)
        for name in STEP_COLUMNS:
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), err_msg=name)


def test_a_table_that_was_given_out_stays_as_it_was() -> None:
    columns = StepColumns()
    columns.add(StepDone(t_ns=step, rank=rank, step=step, start_ns=0, end_ns=1) for rank in (0, 1) for step in (0, 1))
    before = columns.table(100)
    kept = {name: getattr(before, name).copy() for name in STEP_COLUMNS}
    columns.add(StepDone(t_ns=5, rank=rank, step=2, start_ns=0, end_ns=1) for rank in (0, 1))
    assert columns.table(100).step.tolist() == [0, 1, 2, 0, 1, 2]
    for name, column in kept.items():
        np.testing.assert_array_equal(getattr(before, name), column)


@given(st.lists(st.lists(st.integers(0, 50), max_size=8), max_size=6), st.integers(0, 50))
def test_times_of_writers_that_overlap_are_counted_in_order(bits: list[list[int]], now_ns: int) -> None:
    found = Times()
    for bit in bits:
        found.add(bit)
    every = sorted(time for bit in bits for time in bit)
    assert found.upto(now_ns) == sum(time <= now_ns for time in every)
    assert found.newest_ns == (every[-1] if every else 0)
    for count in range(1, len(every) + 1):
        assert found.last_of(count) == every[count - 1]
