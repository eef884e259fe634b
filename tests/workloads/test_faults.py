"""Faults: what ``--inject`` may ask for, where it makes no sense, and what the workloads' own parts of them do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

Import = Callable[[str], ModuleType]

TENSOR = {"tp", "fsdp-tp"}
PIPELINES = {"pp-gpipe", "pp-1f1b", "pp-interleaved"}
REPLICAS = {"ddp", "zero1", "fsdp", "fsdp1", "hsdp", "ep"}
TORCH = REPLICAS | {"cp"} | TENSOR | PIPELINES
JAX = {"pmap", "shard-map", "shard-map-fsdp", "pjit", "pjit-dp", "pjit-tp", "pjit-2d", "jax-pp", "jax-ep"}
PARALLEL = TORCH | JAX
ALONE = {"torch-single", "jax-single", "dp"}
EVERYWHERE = PARALLEL | ALONE
STRATEGIES = tuple(sorted(EVERYWHERE))
ABLE = {
    "straggler": PARALLEL,
    "slow-input": EVERYWHERE,
    "memory-leak": EVERYWHERE,
    "hang": PARALLEL,
    "rank-crash": TORCH | {"torch-single", "jax-single"},
    "slow-link": TORCH,
    "unsynced-gradients": {"ddp", "zero1", "tp", "cp", "ep", "pmap", "shard-map", "jax-ep"},
    "ragged-batch": REPLICAS,
    "same-key": (TORCH - PIPELINES) | {"pmap", "shard-map", "shard-map-fsdp", "jax-ep"},
    "small-buckets": JAX | {"ddp", "zero1", "cp", "ep"},
    "new-lengths": JAX | {"jax-single"},
}


def test_faults_have_amounts_of_their_own_and_several_may_be_asked_for(workload: Import) -> None:
    faults = workload("faults").faults
    assert faults("") == {}
    assert faults("straggler") == {"straggler": 100.0}
    assert faults("straggler:2.5, same-key,hang:0") == {"straggler": 2.5, "same-key": 0.0, "hang": 0.0}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("20", "no fault '20'"),
        ("slow", "no fault 'slow'"),
        ("slow-input:", "slow-input: makes no sense"),
        ("straggler:-1", "straggler:-1 makes no sense"),
        ("straggler:0", "a number of ms above 0"),
        ("memory-leak:nan", "a number of MiB above 0"),
        ("memory-leak:inf", "a number of MiB above 0"),
        ("hang:2.5", "a step's number"),
        ("hang:-1", "a step's number"),
        ("rank-crash:-1", "a step's number"),
        ("slow-link:0", "a number of Mbit above 0"),
        ("new-lengths:0", "a whole number of steps above 0"),
        ("new-lengths:2.5", "a whole number of steps above 0"),
        ("same-key:3", "takes no amount"),
        ("hang,hang:3", "asked for twice"),
    ],
)
def test_what_is_no_fault_is_refused_with_a_way_out(workload: Import, asked: str, says: str) -> None:
    options = workload("options")
    for ask in (
        lambda: options.parse(["--inject", asked]),
        lambda: options.check(replace(options.PRESETS["tiny"], inject=asked), 1),
    ):
        with pytest.raises(options.OptionError) as refused:
            ask()
        assert says in refused.value.message
        assert refused.value.hint


def test_the_table_of_faults_is_the_one_that_is_tested(workload: Import) -> None:
    assert set(workload("faults").KINDS) == set(ABLE)


@pytest.mark.parametrize("fault", ABLE)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fault_that_a_strategy_cannot_have_is_refused(workload: Import, fault: str, strategy: str) -> None:
    options = workload("options")
    asked = options.parse(["--inject", fault, *(("--model", "moe") if strategy.endswith("ep") else ())])
    ranks = 1 if strategy in ALONE else 2
    if strategy in ABLE[fault]:
        options.check(asked, ranks, strategy)
        return
    with pytest.raises(options.OptionError) as refused:
        options.check(asked, ranks, strategy)
    assert refused.value.message.startswith(f"{fault} makes no sense in {strategy}: ")
    assert {word.strip(" ,.") for word in refused.value.hint.split()} >= ABLE[fault]


def test_faults_between_ranks_are_refused_where_there_is_one_rank(workload: Import) -> None:
    options = workload("options")
    for fault in ABLE.keys() - {"slow-input", "memory-leak", "new-lengths", "rank-crash"}:
        with pytest.raises(options.OptionError, match="one rank"):
            options.check(options.parse(["--inject", fault]), 1, "ddp")


def test_a_hang_past_the_end_and_a_batch_too_small_to_be_ragged_are_refused(workload: Import) -> None:
    options = workload("options")
    with pytest.raises(options.OptionError, match="past the last step, 4"):
        options.check(options.parse(["--inject", "hang:5", "--steps", "5"]), 2, "ddp")
    options.check(options.parse(["--inject", "hang:4", "--steps", "5"]), 2, "ddp")
    with pytest.raises(options.OptionError, match="rank-crash:5 is past the last step, 4"):
        options.check(options.parse(["--inject", "rank-crash:5", "--steps", "5"]), 2, "ddp")
    with pytest.raises(options.OptionError, match="one sample"):
        options.check(options.parse(["--inject", "ragged-batch", "--batch", "2"]), 2, "ddp")


def test_a_fault_is_told_in_words_with_its_amount_and_its_rank(workload: Import) -> None:
    options = workload("options")
    asked = options.parse(["--inject", "straggler:60,hang"])
    assert options.fault_words(asked) == ["straggler 60 ms", "hang at step 10"]
    assert options.fault_effects(asked, 4) == [
        "rank 3 computes longer in every step",
        "rank 3 stops before the collectives of that step",
    ]
    assert options.fault_words(options.PRESETS["tiny"]) == []


def test_a_fault_sets_the_options_that_it_needs_and_leaves_those_given(workload: Import) -> None:
    options = workload("options")
    assert options.parse(["--inject", "same-key"]).dropout == 0.1
    assert options.parse(["--inject", "same-key", "--dropout", "0.3"]).dropout == 0.3
    small = options.parse(["--inject", "small-buckets"])
    assert small.bucket_mb < 0.01
    assert options.parse(options.arguments(small)) == small


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_last_rank_of_a_ragged_batch_has_half_as_many_samples(workload: Import, accumulate: int) -> None:
    options, batches = workload("options"), workload("batches")
    even = replace(options.PRESETS["tiny"], accumulate=accumulate)
    ragged = replace(even, inject="ragged-batch")
    (first,), (last,) = (batches.micro_batches(ragged, 0, rank, 2) for rank in (0, 1))
    assert np.array_equal(first, batches.micro_batches(even, 0, 0, 2)[0])
    assert first.shape == (accumulate, 4 // accumulate, even.seq + 1)
    assert last.shape == (accumulate, 2 // accumulate, even.seq + 1)
    assert [options.samples(ragged, rank, 2) for rank in (0, 1)] == [4, 2]
    assert [options.samples(even, rank, 2) for rank in (0, 1)] == [4, 4]


def test_every_new_length_is_one_that_was_never_seen(workload: Import) -> None:
    options, batches = workload("options"), workload("batches")
    asked = replace(options.PRESETS["tiny"], seq=4, inject="new-lengths:3")
    lengths = [batches.micro_batches(asked, step)[0].shape[-1] - 1 for step in range(17)]
    assert lengths == [4, 4, 4, 3, 4, 4, 2, 4, 4, 1, 4, 4, 1, 4, 4, 1, 4]
