"""Faults that are injected into the bundled strategies show in the recording, and in a clean run none does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from meshscope.analysis.breakdown import breakdown
from meshscope.analysis.findings import findings
from meshscope.analysis.flight import flight
from meshscope.analysis.overlap import overlap
from meshscope.recording.entries import Ended
from meshscope.run import Gallery, Run

from .conftest import Live

pytestmark = [pytest.mark.live, pytest.mark.slow]

SMALL = ("--device", "cpu", "--layers", "2", "--width", "64", "--vocab", "512", "--seq", "32")
STEPS = 16
STRAGGLES_MS, LATE_MS, LEAK_MIB = 120, 100, 16
GRADIENTS = 15
"""Trainable arrays of two blocks, two embeddings and the last norm."""


@dataclass
class Recorded:
    run: Run
    ended: Ended


@pytest.fixture
def made(record: Callable[..., Live]) -> Callable[..., Recorded]:
    """A short run of two ranks with some faults ("" for a clean one)."""

    def make(strategy: str, inject: str = "", **asked: object) -> Recorded:
        options = (*SMALL, *(("--inject", inject) if inject else ()))
        live = record(strategy, workloads="", ranks=2, steps=STEPS, options=options, **asked)
        ended = live.wait(200)
        _, (run,) = Gallery(live.folder).at(time.time_ns())
        return Recorded(run, ended)

    return make


def _compute_ms(run: Run) -> dict[int, float]:
    """Per rank, of the mean profiled step."""
    return {rank.rank: rank.per_step.compute_ns / 1e6 for rank in breakdown(run) if rank.per_step is not None}


def _wait_ms(run: Run) -> dict[int, float]:
    """Per rank, the median wait for a batch."""
    steps = run.steps
    return {rank: float(np.median(steps.data_wait_ns[steps.rank == rank])) / 1e6 for rank in set(steps.rank.tolist())}


def _parameters_differ(run: Run) -> set[bool]:
    """Whether ranks have different sums of parameters, over the checks past the first step."""
    sums = {(check.step, check.rank): check.parameters for check in run.checks if check.step}
    assert sums
    return {sums[step, 0] != sums[step, 1] for step, _ in sums}


def _has_one_key(run: Run) -> set[bool]:
    keys = {(check.step, check.rank): check.rng for check in run.checks}
    assert all(keys.values())
    return {keys[step, 0] == keys[step, 1] for step, _ in keys}


def _samples(run: Run) -> dict[int, set[int]]:
    steps = run.steps
    return {rank: set(steps.samples[steps.rank == rank].tolist()) for rank in set(steps.rank.tolist())}


def _growth_mib(run: Run) -> float:
    """Of the first process's memory from the first step's end to the last one's."""
    samples, steps = run.samples, run.steps
    is_memory = samples.field == samples.fields.index("rss_bytes")
    is_rank = samples.device == samples.devices.index("rank 0")
    inside = (samples.time_ns >= steps.end_ns.min()) & (samples.time_ns <= steps.end_ns.max())
    values = samples.value[is_memory & is_rank & inside]
    assert len(values) > 2
    return float(values[-1] - values[0]) / 2**20


def _all_reduces_per_step(run: Run) -> float:
    """Calls of one rank in a profiled step."""
    calls = sum(found.count for found in overlap(run) if found.name == "all_reduce")
    return calls / len({(window.rank, step) for window in run.windows for step in window.steps})


@pytest.mark.parametrize("strategy", ["ddp", "pmap"])
def test_a_clean_run_shows_no_fault(made: Callable[..., Recorded], strategy: str) -> None:
    clean = made(strategy)
    run = clean.run
    assert clean.ended.outcome == "done"
    assert run.experiment.faults == []
    assert "injected" not in run.experiment.title
    assert not any("injected" in log.text for log in run.logs)
    compute_ms = _compute_ms(run)
    assert abs(compute_ms[1] - compute_ms[0]) < STRAGGLES_MS / 2
    assert all(wait_ms < LATE_MS / 2 for wait_ms in _wait_ms(run).values())
    assert _parameters_differ(run) == {False}
    assert _has_one_key(run) == {False}
    assert set.union(*_samples(run).values()) == ({4} if strategy == "ddp" else {8})
    assert _all_reduces_per_step(run) < 3
    assert run.records == ()


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "pmap", "pjit"])
def test_a_straggler_computes_longer_and_is_told_in_title_and_log(made: Callable[..., Recorded], strategy: str) -> None:
    run = made(strategy, f"straggler:{STRAGGLES_MS}").run
    compute_ms = _compute_ms(run)
    assert compute_ms[1] - compute_ms[0] > STRAGGLES_MS / 2
    assert run.experiment.faults == [f"straggler {STRAGGLES_MS} ms"]
    assert run.experiment.title.endswith(f", with injected straggler {STRAGGLES_MS} ms")
    assert [log.level for log in run.logs if "injected: straggler" in log.text] == ["warning"]


@pytest.mark.parametrize("strategy", ["ddp", "pmap"])
def test_unsynced_gradients_let_parameters_drift_apart(made: Callable[..., Recorded], strategy: str) -> None:
    run = made(strategy, "unsynced-gradients").run
    assert _parameters_differ(run) == {True}


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_ragged_batch_is_recorded_with_the_samples_that_each_rank_had(
    made: Callable[..., Recorded], strategy: str
) -> None:
    run = made(strategy, "ragged-batch").run
    assert _samples(run) == {0: {4}, 1: {2}}
    assert {check.rank: check.batch_shape for check in run.checks} == {0: (1, 4, 33), 1: (1, 2, 33)}


@pytest.mark.parametrize("strategy", ["ddp", "pmap"])
def test_the_same_key_shows_in_the_fingerprints(made: Callable[..., Recorded], strategy: str) -> None:
    run = made(strategy, "same-key").run
    assert _has_one_key(run) == {True}
    assert run.experiment.options["dropout"] == 0.1


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_hang_names_the_rank_that_left_out_a_collective(made: Callable[..., Recorded], strategy: str) -> None:
    """Both ranks are in the same step then: the flight recorders tell them apart."""
    hung = made(strategy, "hang:6", patience_s=6.0)
    assert (hung.ended.outcome, hung.ended.rank) == ("failed", 1)
    assert "rank 1 hangs" in hung.ended.why
    assert "which it has not called" in hung.ended.why
    assert hung.run.steps.step.max() == 5
    seen = flight(hung.run)
    assert seen is not None
    assert seen.ranks == (0, 1)
    (stuck,) = seen.unfinished
    assert (stuck.waiting, stuck.absent) == ((0,), (1,))
    assert "it stands in TorchFaults._hang() (injecting.py" in hung.ended.why
    assert {entry.rank for entry in hung.run.stacks} == {0, 1}
    assert any("Looks like a hang of rank 1" in log.text for log in hung.run.logs), "well before the end"


@pytest.mark.parametrize("strategy", ["pmap", "pjit"])
def test_a_jax_device_that_hangs_is_named_with_the_collective_that_the_other_waits_in(
    made: Callable[..., Recorded], strategy: str
) -> None:
    """One process drives both: its stacks tell the device apart, and XLA says how many are missing."""
    hung = made(strategy, "hang:6", patience_s=12.0)
    assert (hung.ended.outcome, hung.ended.rank) == ("failed", 1)
    assert "it stands in _wait_for_ever(device=1) (injecting.py" in hung.ended.why
    (found,) = [one for one in findings(hung.run) if one.code == "hang"]
    said = " ".join(found.evidence)
    assert found.ranks == (1,)
    assert "XLA: 1 of 2 participants wait in all_" in said
    assert "of devices 0–1, 1 of them not there" in said
    assert any("Looks like a hang of rank 1" in log.text for log in hung.run.logs), "well before the end"


@pytest.mark.parametrize("strategy", ["ddp", "pmap", "torch-single"])
def test_a_memory_leak_grows_with_every_step(made: Callable[..., Recorded], strategy: str) -> None:
    """Beside a late batch, so that the steps last long enough for memory to be read in between."""
    ranks = 2 if strategy == "pmap" else 1  # of the first process
    whole_mib = LEAK_MIB * ranks * (STEPS - 1)
    late = f"slow-input:{LATE_MS}"
    assert _growth_mib(made(strategy, late).run) < whole_mib / 3
    run = made(strategy, f"memory-leak:{LEAK_MIB},{late}").run
    assert _growth_mib(run) > whole_mib / 2
    assert len(run.experiment.faults) == 2


@pytest.mark.parametrize("strategy", ["ddp", "pmap", "pjit-dp"])
def test_small_buckets_reduce_every_gradient_on_its_own(made: Callable[..., Recorded], strategy: str) -> None:
    run = made(strategy, "small-buckets").run
    assert GRADIENTS <= _all_reduces_per_step(run) <= GRADIENTS + 2  # and losses


@pytest.mark.parametrize("strategy", ["ddp", "pmap"])
def test_a_slow_input_is_waited_for_by_the_first_rank(made: Callable[..., Recorded], strategy: str) -> None:
    wait_ms = _wait_ms(made(strategy, f"slow-input:{LATE_MS}").run)
    assert wait_ms[0] >= LATE_MS
    assert all(wait_ms[rank] < LATE_MS / 2 for rank in wait_ms.keys() - {0})
