"""Operations of a step against what is counted from the model's shape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.numerics import numerics
from meshscope.advisor.operations import Layer, Operation, Stage, stage_counts, stages
from meshscope.advisor.presets import preset

LLAMA = preset("7b").architecture
MIXTURE = preset("mixtral-8x7b").architecture


def candidate(**more: object) -> Candidate:
    plain = Candidate("FSDP", "torch", "torchtitan", 4096, 2, numerics("bf16-mixed"))
    return replace(plain, **more)  # type: ignore[arg-type]


def all_layers(stage: Stage) -> list[tuple[Layer, int]]:
    return [(each, 1) for each in (stage.first, stage.last) if each] + list(stage.layers)


def listed(stage: Stage) -> list[tuple[Operation, int]]:
    return [(each, many) for layer, many in all_layers(stage) for each in (*layer.forward, *layer.backward)]


def product_flop(stage: Stage) -> float:
    return sum(
        2.0 * each.m * each.n * each.k * each.times * many for each, many in listed(stage) if each.kind == "matmul"
    )


def expected_flop(model: Architecture, laid: Candidate) -> float:
    attention = 12.0 * model.layers * model.attention_width * laid.seq_len * (0.5 if model.is_causal else 1.0)
    return (model.flop_per_token(laid.seq_len) - attention) * laid.micro_batch * laid.seq_len


@pytest.mark.parametrize("model", [LLAMA, MIXTURE, preset("1.3b").architecture])
def test_products_of_a_step_are_six_flop_per_parameter_and_token(model: Architecture):
    laid = candidate()
    (stage,) = stages(model, laid)
    assert product_flop(stage) == pytest.approx(expected_flop(model, laid), rel=0.002)


def test_what_is_computed_again_adds_a_third():
    (none,), (full,) = stages(LLAMA, candidate()), stages(LLAMA, candidate(checkpointing="full"))
    head = 6.0 * LLAMA.vocab * LLAMA.d_model * 2 * 4096
    assert product_flop(full) - head == pytest.approx((product_flop(none) - head) * 4 / 3, rel=1e-6)


def test_tensor_parallelism_divides_the_products_and_gathers_whole_activations():
    whole, parted = stages(LLAMA, candidate())[0], stages(LLAMA, candidate(tensor=4))[0]
    assert product_flop(parted) == pytest.approx(product_flop(whole) / 4, rel=1e-3)
    gathers = [each for each, _ in listed(parted) if each.kind == "all_gather"]
    assert {each.size_bytes for each in gathers} == {2 * 4096 * 4096 * 2.0}
    assert {(each.ranks, each.stride) for each in gathers} == {(4, 1)}


def test_stages_hold_all_layers_and_only_the_ends_have_tables():
    laid = candidate(pipeline=4)
    classes, counts = stages(LLAMA, laid), stage_counts(laid)
    assert sum(dict(stage.layers)[stage.layers[0][0]] * many for stage, many in zip(classes, counts, strict=True)) == 32
    assert [stage.first is not None for stage in classes] == [True, False, False]
    assert [stage.last is not None for stage in classes] == [False, False, True]


def test_experts_are_divided_and_their_tokens_exchanged_four_times_a_layer():
    (stage,) = stages(MIXTURE, candidate(replicate=8, expert=8))
    layer = stage.layers[0][0]
    exchanges = [each for each in (*layer.forward, *layer.backward) if each.kind == "all_to_all"]
    assert len(exchanges) == 4
    assert exchanges[0].size_bytes == 2 * 4096 * MIXTURE.top_k * MIXTURE.d_model * 2.0
    assert layer.expert_parameters == pytest.approx(MIXTURE.mlp_parameters(MIXTURE.d_ff))


def test_parameters_of_all_stages_are_the_model_s():
    (stage,) = stages(LLAMA, candidate())
    assert stage.parameters == pytest.approx(LLAMA.parameters, rel=1e-4)
