"""Runs that are not described in full."""

from __future__ import annotations

from dataclasses import replace

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.forecast import Fit
from meshscope.advisor.hardware import cluster
from meshscope.advisor.memory import memory, memory_unstated
from meshscope.advisor.numerics import numerics
from meshscope.advisor.presets import preset

LLAMA = preset("llama-3-8b").architecture
FSDP = Candidate("FSDP2", "torch", "torchtitan", 8192, 1, numerics("bf16-mixed"), shard=8, zero_stage=3)
ON = cluster("8xH100")


def test_what_is_stated_in_full_is_left_as_it_is() -> None:
    assert memory_unstated(LLAMA, FSDP, ON, ()) == memory(LLAMA, FSDP, ON)
    assert memory_unstated(LLAMA, FSDP, ON, ("network",)) == memory(LLAMA, FSDP, ON)


def test_unstated_checkpointing_reaches_from_all_of_it_to_none() -> None:
    found = memory_unstated(LLAMA, replace(FSDP, checkpointing="selective"), ON, ("checkpointing",))
    assert found.allocated.low == memory(LLAMA, replace(FSDP, checkpointing="full"), ON).allocated.low
    assert found.allocated.high == memory(LLAMA, FSDP, ON).allocated.high
    assert found.fit is Fit.TOO_CLOSE


def test_a_run_that_ran_computed_again_what_would_not_have_fit() -> None:
    large = replace(FSDP, micro_batch=4)
    assert memory(LLAMA, large, ON).fit is Fit.DOES_NOT
    found = memory_unstated(LLAMA, large, ON, ("checkpointing",))
    assert found.allocated.value == memory(LLAMA, replace(large, checkpointing="full"), ON).allocated.value
    assert found.fit is Fit.TOO_CLOSE


def test_each_assumption_widens_the_interval() -> None:
    plain, doubted = memory(LLAMA, FSDP, ON), memory_unstated(LLAMA, FSDP, ON, ("precision", "shape"))
    assert doubted.used.low < plain.used.low < plain.used.high < doubted.used.high
    assert doubted.used.high / doubted.used.value - 1 > (0.25**2 + 0.2**2) ** 0.5
