"""Bytes per parameter, by hand from the papers and READMEs that print them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate, Numerics
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.memory.place import places
from meshscope.advisor.memory.state import state

HALF = Numerics("fp16 of the ZeRO paper", "fp16", 2, 2, 8, master_bytes=4, reduce_bytes=2)
MEGATRON = Numerics("bf16, fp32 gradients", "bf16", 2, 4, 8, master_bytes=4)
FULL = Numerics("fp32", "fp32", 4, 4, 8)
MODEL = Architecture("7.5 B", 36, 4096, 32, 32, 16384, 51200, is_gated=False)


def per_parameter(candidate: Candidate, architecture: Architecture = MODEL) -> float:
    (place,) = places(architecture, candidate)
    return sum(part.size_bytes for part in state(place, "end")) / architecture.parameters


def over(zero_stage: int, ranks: int, numerics: Numerics, stack: str = "torch") -> Candidate:
    return Candidate("", "torch", stack, 1024, 1, numerics, shard=ranks, zero_stage=zero_stage)


@pytest.mark.parametrize(("zero_stage", "billions"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_each_stage_of_zero_takes_what_its_paper_prints_for_7500_million_parameters_on_64_devices(
    zero_stage: int, billions: float
) -> None:
    assert 7.5 * per_parameter(over(zero_stage, 64, HALF, "deepspeed")) == pytest.approx(billions, abs=0.05)


@pytest.mark.parametrize("ranks", [1, 8, 64])
def test_megatrons_distributed_optimizer_takes_6_bytes_and_12_over_the_ranks(ranks: int) -> None:
    assert per_parameter(over(1, ranks, MEGATRON, "megatron-te")) == pytest.approx(6 + 12 / ranks)


def test_half_wide_gradients_of_megatron_are_copied_to_fp32_for_the_step() -> None:
    """Its README: 20 bytes a parameter, 4 + 16 over the ranks with the distributed optimizer."""
    from meshscope.advisor.memory.temporaries import temporaries

    numerics = replace(MEGATRON, gradient_bytes=2)
    for ranks, readme in ((1, 20.0), (8, 4 + 16 / 8)):
        (place,) = places(MODEL, over(1, ranks, numerics, "megatron"))
        copied = sum(part.size_bytes for part in temporaries(place, "step") if part.name == "gradients in fp32")
        state_bytes = sum(part.size_bytes for part in state(place, "step"))
        assert (copied + state_bytes) / MODEL.parameters == pytest.approx(readme)


@pytest.mark.parametrize(
    ("optimizer", "bytes_per_parameter"),
    [("adamw", 8), ("sgd", 0), ("sgd-momentum", 4), ("lion", 4), ("adam8bit", 2 + 1 / 32)],
)
def test_an_optimizer_keeps_its_own_number_of_moments(optimizer: str, bytes_per_parameter: float) -> None:
    plain = over(0, 1, FULL)
    kept = per_parameter(replace(plain, optimizer=optimizer)) - 8
    assert kept == pytest.approx(bytes_per_parameter, rel=1e-3)


def test_muon_keeps_one_moment_of_matrices_and_two_of_the_tables() -> None:
    kept = per_parameter(replace(over(0, 1, FULL), optimizer="muon")) - 8
    tables = 2 * MODEL.vocab * MODEL.d_model / MODEL.parameters
    assert kept == pytest.approx(4 + 4 * tables)


def test_hsdp_divides_by_the_ranks_of_a_group_only() -> None:
    assert per_parameter(replace(over(3, 8, FULL), replicate=4)) == pytest.approx(16 / 8)


def test_tensor_and_pipeline_divide_matrices_and_experts_divide_experts() -> None:
    mixture = Architecture("", 4, 512, 8, 8, 1024, 1000, experts=16, top_k=2)
    (place,) = places(mixture, replace(over(0, 1, FULL), tensor=2, replicate=4, expert=4))
    experts = 4 * 16 * 3 * 512 * 1024
    assert place.share.experts == experts / 4 / 2
    norms_and_routers = 4 * (2 * 512 + 16 * 512) + 512
    rest = mixture.parameters - experts - norms_and_routers
    assert place.share.plain == rest / 2 + norms_and_routers


def test_gradients_appear_at_the_end_of_backward_unless_earlier_micro_batches_left_theirs() -> None:
    (once,), (twice,) = places(MODEL, over(0, 1, FULL)), places(MODEL, replace(over(0, 1, FULL), accumulate=2))
    made = [
        sum(part.size_bytes for part in state(place, "loss") if part.category == "gradients") for place in (once, twice)
    ]
    assert made == [0, 4 * MODEL.parameters]


def test_an_optimizer_that_nobody_counted_is_refused() -> None:
    with pytest.raises(NotCovered, match="what shampoo keeps per parameter is not known"):
        per_parameter(replace(over(0, 1, FULL), optimizer="shampoo"))
