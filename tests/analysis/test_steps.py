"""Step time and throughput, from steps that no profiler touched."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from drawn import run, steps
from hypothesis import given
from hypothesis import strategies as st

from meshscope.analysis.steps import Steps, _series
from meshscope.analysis.steps import steps as answer
from meshscope.recording.entries import Compiled, Entry, StepDone, TraceWritten

MS = 1e6


def compiled(step: int, duration_ms: float, *, stage: str = "compile", again: bool = False, rank: int = 0) -> Compiled:
    return Compiled(
        t_ns=0, rank=rank, name="f", stage=stage, duration_ns=round(duration_ms * MS), step=step, is_recompilation=again
    )


def traced(step: int, rank: int, stop_ms: float) -> TraceWritten:
    return TraceWritten(
        t_ns=0, rank=rank, path=f"{rank}-{step}", format="kineto", first_step=step, end_step=step + 1, size_bytes=1,
        stop_ns=round(stop_ms * MS),
    )  # fmt: skip


def test_the_first_step_lasts_from_the_first_ranks_start_to_the_last_ones_end() -> None:
    found = answer(run(steps([100] * 4, ranks=3)))
    assert found.duration_ns[0] == 102 * MS


def drifting(lag_ms: float, count: int = 12) -> list[Entry]:
    """Two ranks of 100 ms steps without a pause; the second is always ``lag_ms`` behind the first."""
    return [
        StepDone(
            t_ns=round((number + 1) * 100 * MS + lag),
            rank=rank,
            step=number,
            start_ns=round(number * 100 * MS + lag),
            end_ns=round((number + 1) * 100 * MS + lag),
            samples=4,
        )
        for number in range(count)
        for rank, lag in ((0, 0.0), (1, lag_ms * MS))
    ]


@pytest.mark.parametrize("lag_ms", [0, 30, 90])
def test_ranks_that_drift_apart_do_not_make_a_step_longer(lag_ms: float) -> None:
    found = answer(run(drifting(lag_ms)))
    assert found.median_ns == 100 * MS
    assert found.samples_per_s == pytest.approx(8 / 0.1)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50), st.integers(0, 9)), min_size=1, max_size=20))
def test_steps_never_take_more_than_the_wall_time_they_fill(lengths: list[tuple[int, int, int]]) -> None:
    entries: list[Entry] = []
    free = [0, 0]
    for number, (first, second, pause) in enumerate(lengths):
        for rank, length in enumerate((first, second)):
            start = free[rank] + pause
            free[rank] = start + length
            entries.append(StepDone(t_ns=free[rank], rank=rank, step=number, start_ns=start, end_ns=free[rank]))
    found = answer(run(entries))
    assert found.duration_ns.sum() <= max(free) - lengths[0][2]
    assert (found.duration_ns >= 0).all()


def test_warm_up_and_profiled_steps_are_not_measured() -> None:
    found = answer(run(steps([900, 500, 100, 100, 700, 100], ranks=1, profiled=[4])))
    assert (found.count, found.measured, found.profiled) == (6, 3, 1)
    assert (found.median_ns, found.first_ns, found.profiled_median_ns) == (100 * MS, 900 * MS, 700 * MS)


def test_a_step_that_compiled_is_not_measured() -> None:
    entries: list[Entry] = [*steps([100, 100, 100, 800, 100], ranks=1), compiled(3, 600, again=True)]
    found = answer(run(entries))
    assert (found.measured, found.p95_ns, found.recompilations, found.compilations) == (2, 100 * MS, 1, 1)


def test_throughput_counts_the_samples_of_all_ranks() -> None:
    found = answer(run(steps([99] * 5, ranks=2, samples=16)))
    assert found.samples_per_s == pytest.approx(32 / 0.1)
    assert found.tokens_per_s == pytest.approx(320 / 0.1)


def test_the_spread_is_half_the_interquartile_range() -> None:
    found = answer(run(steps([1, 1, 100, 110, 120, 130, 140], ranks=1)))
    assert (found.median_ns, found.spread_ns) == (120 * MS, 10 * MS)


def test_a_step_that_a_rank_has_not_finished_is_no_step_yet() -> None:
    entries = [entry for entry in steps([100] * 4) if not (entry.rank == 1 and entry.step == 3)]
    assert answer(run(entries)).count == 3


def test_the_first_compilation_is_the_slowest_ranks() -> None:
    entries: list[Entry] = [
        compiled(-1, 1000), compiled(-1, 200, stage="lower"), compiled(0, 50), compiled(5, 999),
        compiled(-1, 700, rank=1),
    ]  # fmt: skip
    found = answer(run([*steps([100] * 3), *entries]))
    assert found.compile_ns == 1250 * MS
    assert found.compilations == 3


def test_the_profilers_cost_is_its_slower_steps_and_the_time_it_held_the_ranks() -> None:
    entries: list[Entry] = [*steps([100] * 8, ranks=1, profiled=[5]), traced(5, 0, 40), traced(5, 1, 60)]
    found = answer(run([_longer(entry, 20) if getattr(entry, "step", -1) == 5 else entry for entry in entries]))
    assert found.profiled_slowdown_frac == pytest.approx(0.2)
    assert found.profiler_cost_frac == pytest.approx(80 / 807)


def _longer(entry: Entry, by_ms: float) -> Entry:
    return msgspec.structs.replace(entry, end_ns=entry.end_ns + round(by_ms * MS))  # type: ignore[attr-defined]


def test_no_profiling_costs_nothing() -> None:
    assert answer(run(steps([100] * 5))).profiler_cost_frac == 0


def test_before_the_first_step_nothing_is_known() -> None:
    found = answer(run([compiled(-1, 100)]))
    assert (found.count, found.planned) == (0, 10)
    assert math.isnan(found.median_ns)
    assert found.compile_ns == 100 * MS
    assert found.number.tolist() == []


def test_what_was_not_recorded_is_not_zero() -> None:
    found = answer(run(steps([100] * 4, ranks=1, samples=-1, loss=None, data_wait_ns=-1)))
    assert all(math.isnan(value) for value in (found.samples_per_s, found.loss_last, found.data_wait_frac))
    assert not math.isnan(found.median_ns)


def test_the_loss_is_that_of_the_ranks_that_tell_one() -> None:
    """A stage of a pipeline before the last has none; one that told a loss before and tells none now has lost it."""
    made = [msgspec.structs.replace(e, loss=None if e.rank == 0 else 4.0 - e.step) for e in steps([100] * 4)]
    found = answer(run(made))
    assert found.loss.tolist() == [4.0, 3.0, 2.0, 1.0]
    assert found.loss_last == 1.0
    lost = [msgspec.structs.replace(e, loss=None) if (e.rank, e.step) == (1, 3) else e for e in steps([100] * 4)]
    assert math.isnan(answer(run(lost)).loss_last)


def test_samples_that_another_rank_counts_are_counted_once() -> None:
    made = [msgspec.structs.replace(e, samples=8 if e.rank == 1 else 0) for e in steps([100] * 8)]
    assert answer(run(made)).samples_per_s == pytest.approx(8 / 0.101)  # a step ends 1 ms later on rank 1


def test_the_loss_and_the_wait_for_data_are_means_over_ranks() -> None:
    entries = steps([100] * 4, ranks=2)
    waited = [
        StepDone(t_ns=e.t_ns, rank=e.rank, step=e.step, start_ns=e.start_ns, end_ns=e.end_ns, loss=float(e.rank),
                 data_wait_ns=round(e.rank * 20 * MS))
        for e in entries
    ]  # fmt: skip
    found = answer(run(waited))
    assert found.loss_last == 0.5
    assert found.data_wait_frac == pytest.approx(0.1)


def test_the_empty_answer_owns_its_columns() -> None:
    assert Steps().number is not Steps().number
    assert Steps().loss.dtype == np.float64


def test_a_step_without_a_length_has_no_rate() -> None:
    entries = [
        StepDone(
            t_ns=0, rank=0, step=n, start_ns=round(n * 100 * MS), end_ns=round((n + (n != 6)) * 100 * MS), samples=4
        )
        for n in range(12)
    ]
    found = answer(run([entry for entry in entries if entry.step != 5]))
    assert found.measured == 8, "of steps 2 to 11 one is missing and one has no length"
    assert found.samples_per_s == pytest.approx(40)


def test_only_warm_steps_count_as_profiled_since_what_profiling_added_is_told_from_them() -> None:
    found = answer(run(steps([100] * 12, profiled=[1, 5, 6])))
    assert found.profiled == 2


@st.composite
def journals(draw: st.DrawFn) -> list[Entry]:
    """Ranks that go on without a gap, each to a step of its own; now and then one is told twice or left out."""
    found: list[Entry] = []
    for rank in range(draw(st.integers(1, 4))):
        numbers = list(range(draw(st.integers(0, 1)), draw(st.integers(1, 6))))
        numbers += draw(st.lists(st.integers(0, 6), max_size=1))
        left_out = draw(st.one_of(st.none(), st.integers(0, 5)))
        for number in sorted(numbers):
            if number == left_out:
                continue
            start = 1000 * number + draw(st.integers(0, 300))
            end = start + draw(st.integers(0, 900))
            found.append(
                StepDone(t_ns=start + 900, rank=rank, step=number, start_ns=start, end_ns=end,
                         samples=draw(st.integers(-1, 4)), tokens=8, loss=draw(st.sampled_from((None, 2.0, 3.0))),
                         data_wait_ns=draw(st.integers(-1, 100)), is_profiled=draw(st.booleans()))
            )  # fmt: skip
    return found


def told(rank: int, number: int, *, at_ms: int = 0, samples: int = 4) -> StepDone:
    """A step of 100 ms, told when it ended."""
    start_ms = 100 * number + at_ms
    start, end = round(start_ms * MS), round((start_ms + 100) * MS)
    return StepDone(t_ns=end, rank=rank, step=number, start_ns=start, end_ns=end, samples=samples)


@pytest.mark.parametrize("many", [0, 10**9])
def test_a_step_told_twice_by_one_rank_and_never_by_another_is_not_finished(
    monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr("meshscope.analysis.steps._MANY", many)
    entries = [told(rank, number) for number in range(6) for rank in (0, 1) if (number, rank) != (4, 1)]
    found = _series(run([*entries, told(0, 4, at_ms=5)]).steps)
    assert found.number.tolist() == [0, 1, 2, 3, 5]
    assert found.samples.tolist() == [8] * 5


@pytest.mark.parametrize("many", [0, 10**9])
def test_a_step_told_twice_counts_once_as_it_was_told_last(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr("meshscope.analysis.steps._MANY", many)
    entries = [told(rank, number) for number in range(4) for rank in (0, 1)]
    found = _series(run([*entries, told(0, 3, at_ms=7, samples=6)]).steps)
    assert found.number.tolist() == [0, 1, 2, 3]
    assert found.samples.tolist() == [8, 8, 8, 6 + 4]
    assert (found.start_ns[3], found.end_ns[3]) == (300 * MS, 407 * MS), "rank 1 began, rank 0 ended last"


@given(journals())
def test_many_rows_are_reduced_rank_by_rank_to_what_a_sort_of_all_gives(entries: list[Entry]) -> None:
    table = run(entries).steps
    found = {}
    for many in (0, 10**9):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("meshscope.analysis.steps._MANY", many)
            found[many] = _series(table.where(slice(None)))  # a table of its own: answers are kept
    for name, column in vars(found[0]).items():
        np.testing.assert_allclose(column, vars(found[10**9])[name], rtol=1e-12, err_msg=name)
        assert column.dtype == vars(found[10**9])[name].dtype
