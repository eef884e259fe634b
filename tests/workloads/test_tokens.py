"""Tokens: every strategy sees the same ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

Import = Callable[[str], ModuleType]


def _micro_batches(workload: Import) -> Callable[..., Any]:
    """Tokens are all that a batch of them has."""

    def tokens(*asked: Any, **more: Any) -> Any:
        (only,) = workload("batches").micro_batches(*asked, **more)
        return only

    return tokens


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_ranks_together_see_the_global_batch_once(workload: Import, ranks: int) -> None:
    options, micro_batches = workload("options").PRESETS["tiny"], _micro_batches(workload)
    whole = micro_batches(options, 3)
    slices = [micro_batches(options, 3, rank, ranks) for rank in range(ranks)]
    assert np.array_equal(np.concatenate(slices, axis=1), whole)
    assert len(np.unique(whole[0], axis=0)) == options.batch


def test_micro_batches_are_the_same_samples_in_more_parts(workload: Import) -> None:
    options, micro_batches = workload("options").PRESETS["tiny"], _micro_batches(workload)
    parts = micro_batches(replace(options, accumulate=2), 0, rank=1, ranks=2)
    assert parts.shape == (2, 2, options.seq + 1)
    assert np.array_equal(parts.reshape(1, 4, -1), micro_batches(options, 0, rank=1, ranks=2))


def test_tokens_depend_on_seed_and_step_alone(workload: Import) -> None:
    options, micro_batches = workload("options").PRESETS["tiny"], _micro_batches(workload)
    first = micro_batches(options, 0)
    assert np.array_equal(first, micro_batches(options, 0))
    assert not np.array_equal(first, micro_batches(options, 1))
    assert not np.array_equal(first, micro_batches(replace(options, seed=1), 0))


def test_every_token_is_in_the_vocabulary(workload: Import) -> None:
    options, micro_batches = workload("options").PRESETS["tiny"], _micro_batches(workload)
    tokens = micro_batches(replace(options, vocab=7, batch=64), 0)
    assert tokens.min() == 0
    assert 3 < tokens.max() < 7


def test_a_slow_input_keeps_the_first_rank_waiting_and_changes_no_token(workload: Import) -> None:
    options, micro_batches = workload("options").PRESETS["tiny"], _micro_batches(workload)
    slow = replace(options, inject="slow-input:80")

    def seconds(rank: int) -> float:
        begin_s = time.perf_counter()
        assert np.array_equal(micro_batches(slow, 0, rank, 2), micro_batches(options, 0, rank, 2))
        return time.perf_counter() - begin_s

    assert seconds(0) >= 0.08
    assert min(seconds(1) for _ in range(5)) < 0.08
