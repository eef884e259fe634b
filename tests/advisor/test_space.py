"""What layouts are legal, and that none is dropped that might fit."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from meshscope.advisor.bounds import least_bytes
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.memory import memory
from meshscope.advisor.question import Question
from meshscope.advisor.request import Request, posed
from meshscope.advisor.shortlist import shortlist
from meshscope.advisor.space import fillings, layouts


def question(model: str, devices: str, **more: object) -> Question:
    return posed(Request(model, devices, **more)).question  # type: ignore[arg-type]


def everything(asked: Question) -> list[Candidate]:
    return [each for layout in layouts(asked) for each in fillings(asked, layout)]


@pytest.mark.parametrize(("model", "devices"), [("7b", "64xH100"), ("mixtral", "64xH100"), ("8b", "8xTPUv5p")])
def test_degrees_multiply_to_the_devices_and_the_batch_is_the_one_asked_for(model: str, devices: str) -> None:
    asked = question(model, devices)
    found = everything(asked)
    assert {each.devices for each in found} == {asked.cluster.devices}
    assert {each.tokens_per_step for each in found} == {asked.tokens_per_step}


def test_no_two_candidates_are_alike() -> None:
    found = everything(question("mixtral", "64xH100", framework="both"))
    assert len(found) == len(set(found))


def test_tensor_parallelism_divides_the_heads_of_keys_and_stays_in_a_node() -> None:
    """TinyLlama has 4 heads of keys; Llama-2-7B has 32, and a node 8 devices."""
    assert {each.tensor for each in layouts(question("1.1b", "16xA100"))} == {1, 2, 4}
    assert {each.tensor for each in layouts(question("7b", "16xA100"))} == {1, 2, 4, 8}
    assert max(each.tensor for each in layouts(question("7b", "16xA100", most_tensor=16))) == 16


def test_a_pipeline_has_layers_for_every_stage_up_to_what_the_table_and_the_output_layer_take() -> None:
    """126 layers do not divide by 4, but 126 and two more do; they leave 16 stages of 8, less two places."""
    stages = {each.pipeline for each in layouts(question("405b", "4096xH100"))}
    assert {1, 2, 4, 8, 16} <= stages
    assert {each.pipeline for each in layouts(question("tiny", "8xH100"))} == {1, 2, 4}


def test_a_pipeline_has_at_least_as_many_micro_batches_as_stages() -> None:
    found = [each for each in everything(question("7b", "64xH100")) if each.pipeline > 1]
    assert all(each.accumulate >= each.pipeline for each in found)
    assert all(each.accumulate % each.pipeline == 0 for each in found if each.schedule == "interleaved")


def test_where_samples_are_fewer_than_devices_data_parallelism_alone_is_not_legal() -> None:
    alone = {"ddp", "zero1", "zero2", "fsdp", "hsdp"}
    assert alone.isdisjoint(each.strategy for each in layouts(question("7b", "64xH100", batch=32)))
    assert alone <= {each.strategy for each in layouts(question("7b", "64xH100", batch=64))}


def test_experts_divide_over_ranks_that_see_different_tokens() -> None:
    found = list(layouts(question("mixtral", "64xH100")))
    assert {each.expert for each in found} == {1, 8}
    assert all(each.data * each.context % each.expert == 0 for each in found)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(("=fsdp",), {"fsdp"}), (("fsdp+tp",), {"fsdp+tp"}), (("tp+fsdp",), {"fsdp+tp"}), (("pmap",), {"pmap"})],
)
def test_a_strategy_can_be_asked_for(asked: tuple[str, ...], expected: set[str]) -> None:
    assert {each.strategy for each in layouts(question("7b", "8xH100", strategies=asked))} == expected


def test_a_word_of_a_strategy_finds_all_that_have_it() -> None:
    found = {each.strategy for each in layouts(question("7b", "8xH100", strategies=("tp",)))}
    assert "fsdp+tp" in found
    assert all("tp" in strategy.split("+") for strategy in found)


@pytest.mark.parametrize(
    ("model", "devices"),
    [("7b", "64xH100"), ("405b", "256xH100"), ("deepseek-v3", "64xH100"), ("8b", "8xTPUv5p"), ("tiny", "4xcpu")],
)
def test_the_bound_is_below_every_forecast(model: str, devices: str) -> None:
    """Else something that fits would be dropped unseen."""
    asked = question(model, devices)
    drawn = random.Random(1).sample(everything(asked), 20)
    for candidate in drawn:
        for each in (candidate, replace(candidate, stack="torch", is_compiled=False)):
            try:
                held = memory(asked.architecture, each, asked.cluster)
            except NotCovered:
                continue
            assert least_bytes(asked.architecture, each) <= held.used.low, each


def test_what_cannot_fit_is_counted_and_the_nearest_is_kept() -> None:
    listed = shortlist(question("70b", "8xH100"))
    assert (listed.groups, listed.legal, listed.too_large) == ((), listed.legal, listed.legal)
    assert listed.hopeless[0].smallest_bytes == min(group.smallest_bytes for group in listed.hopeless)
