"""Rules of thumb with their thresholds, by the published table where it has them; reasons; what would flip."""

from __future__ import annotations

import pytest

from meshscope.advisor.answer import Answer, answer
from meshscope.advisor.balance import Balance, balance
from meshscope.advisor.ranking import Advice, advice
from meshscope.advisor.request import Request, posed
from meshscope.advisor.rule import Case, Saying
from meshscope.advisor.rules_of_data import data_parallel_first, gathers_hide, replicas_over_the_network
from meshscope.advisor.rules_of_models import fsdp_beside_tensor, pipeline_if_needed, tensor_degree
from meshscope.advisor.rules_of_settings import message_size, plausible
from meshscope.advisor.sensitivity import sensitivities


@pytest.fixture(scope="module")
def seven() -> Answer:
    return answer(posed(Request("7b", "8xH100")), with_sensitivities=False)


@pytest.fixture(scope="module")
def small() -> Advice:
    return advice(posed(Request("1.1b", "8xA100-40GB", batch=32, micro_batch=4)).question)


def case(found: Advice, flops_per_s: float, bus: float, between: float = 0.0) -> Case:
    return Case(found, Balance(flops_per_s, False, bus, bus, between))


def said(saying: Saying | None) -> Saying:
    assert saying is not None
    return saying


@pytest.mark.parametrize(
    ("flops_per_s", "bus", "half", "mixed", "ddp"),
    [(0.55 * 312e12, 235e9, 730, 974, 1460), (0.45 * 989.4e12, 361e9, 1233, 1644, 2467),
     (0.45 * 2250e12, 606e9, 1671, 2228, 3342)],
)  # fmt: skip
def test_tokens_that_hide_communication_are_the_published_ones(
    small: Advice, flops_per_s: float, bus: float, half: int, mixed: int, ddp: int
) -> None:
    """8 × A100 over NVLink: 730, 980, 1460; 8 × H100: 1230, 1640, 2470; 8 × B200: 1670, 2230, 3340."""
    found = said(gathers_hide(case(small, flops_per_s, bus)))
    assert f"needs {half:,} tokens a device in bf16, {mixed:,} with fp32 gradients, DDP {ddp:,}" in found.threshold
    assert found.holds


def test_replicas_come_first_below_a_size_that_the_memory_gives(seven: Answer) -> None:
    """(0.9 × 85.5 GB − 3 GiB) / 20 B per parameter is 3.69 billion: 1.1 fit, 6.74 do not."""
    found = said(data_parallel_first(case(seven.advice, 1e14, 1e11)))
    assert "so below 3.69 B" in found.threshold
    assert (found.holds, found.chooses) == (False, "")


def test_replicas_come_first_for_a_small_model(small: Advice) -> None:
    found = said(data_parallel_first(case(small, 1e14, 1e11)))
    assert found.holds
    assert "ZeRO-1" in found.chooses


def test_the_width_of_tensor_parallelism_is_bounded_by_the_fabric_and_the_heads(small: Advice) -> None:
    """5632 × 235 GB/s / 172 TFLOP/s is 7.7, but TinyLlama has 4 heads of keys."""
    found = said(tensor_degree(case(small, 172e12, 235e9)))
    assert "= 7.7;" in found.threshold
    assert found.chooses == "tensor parallelism of at most 4"


def test_fsdp_and_tensor_parallelism_mix_as_the_book_has_it(seven: Answer) -> None:
    """X = sqrt(B N / F) = sqrt(131072 × 8 / 11008) = 9.76; least = 4 (C / W)² / F = 4 × 1000² / 11008 = 363."""
    found = said(fsdp_beside_tensor(case(seven.advice, 1e14, 1e11)))
    assert "sqrt(B N / F) = 10 of 8 devices" in found.threshold
    assert "both together 363" in found.threshold
    assert not found.holds


def test_no_pipeline_where_something_fits_without_one(seven: Answer) -> None:
    found = said(pipeline_if_needed(case(seven.advice, 1e14, 1e11)))
    assert (found.holds, found.chooses) == (False, "no pipeline")


def test_a_message_between_nodes_wants_to_be_large() -> None:
    """A layer of Llama-2-7B in 16 bits is 6.74 B / 32 × 2 B = 421 MB, more than 8 MiB but less than 512."""
    found = advice(posed(Request("7b", "16xH100", strategies=("=fsdp",))).question, most_timed=1)
    told = said(message_size(case(found, 1e14, 1e11)))
    assert "421 MB in one message < 537 MB between nodes" in told.threshold


def test_a_forecast_stays_below_the_best_product_measured(seven: Answer) -> None:
    found = said(plausible(case(seven.advice, 1e14, 1e11)))
    assert not found.holds
    assert "80.3 % of it" in found.threshold


def test_replicas_across_slices_want_tokens_for_the_network() -> None:
    """459 TFLOP/s over 6.25 GB/s are 73 440 tokens in a slice."""
    asked = posed(Request("8b", "2x4xTPUv5p", strategies=("pjit-fsdp",))).question
    found = said(replicas_over_the_network(case(advice(asked, most_timed=1), 459e12, 1e12, 6.25e9)))
    assert "C / W of the network = 73,440" in found.threshold
    assert not found.holds


def test_every_rule_shows_its_threshold_and_the_computed_choice_beside_it(seven: Answer) -> None:
    assert len(seven.rules) > 8
    assert all(rule.threshold and rule.source for rule in seven.rules)
    assert all(rule.why for rule in seven.rules if rule.agrees is False)
    assert all(not rule.why for rule in seven.rules if rule.agrees)


def test_the_balance_is_that_of_the_choice(seven: Answer) -> None:
    """Model FLOPs of a step over its compute: between a third and the whole of the best product measured."""
    found = balance(seven.advice)
    assert found.is_of_choice
    assert 0.33 * 794.5e12 < found.compute_flops_per_s < 794.5e12
    assert found.between_bytes_per_s == 0.0


def test_the_reason_names_state_memory_and_exposure(seven: Answer) -> None:
    reason = " ".join(seven.why)
    assert "6.74 billion parameters" in reason
    assert "ddp 8 would need" in reason
    assert "of the step) of communication stay exposed" in reason
    assert "of a device's 85" in reason


def test_half_the_memory_is_asked_anew() -> None:
    """With 20 GB instead of 40 the replicated state of 1.3 B parameters in fp32 (21 GB) fits no more."""
    asked = posed(
        Request("1.3b", "8xA100-40GB", batch=8, strategies=("=ddp", "=fsdp"), precision="bf16-mixed")
    ).question
    found = advice(asked)
    (half,) = [each for each in sensitivities(found) if each.change == "half the memory"]
    assert found.choice is not None
    assert half.choice is not None
    assert half.choice.candidate.strategy == "fsdp"
    assert half.choice.memory.limit_bytes == pytest.approx(found.choice.memory.limit_bytes / 2, rel=0.02)


def test_a_slower_network_is_asked_only_where_there_is_one() -> None:
    asked = posed(Request("1.3b", "8xA100-40GB", batch=8, strategies=("=ddp",))).question
    changes = {each.change for each in sensitivities(advice(asked, most_timed=1))}
    assert "NVLink3 half as fast" in changes
    assert "the network half as fast" not in changes
