"""A whole device: peaks, categories, intervals and the verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.forecast import Fit
from meshscope.advisor.hardware import cluster
from meshscope.advisor.memory import memory, terms
from meshscope.advisor.numerics import numerics
from meshscope.advisor.presets import preset

GIB = 2**30
LLAMA = preset("llama-3-8b").architecture
SMALL = preset("tiny-llama-1.1b").architecture
FSDP = Candidate("FSDP2", "torch", "torchtitan", 8192, 2, numerics("bf16-mixed"), shard=8, zero_stage=3,
                 checkpointing="selective")  # fmt: skip
DDP = Candidate("DDP", "torch", "torch", 2048, 4, numerics("bf16-pure"), replicate=8)
MEGATRON = Candidate("", "torch", "megatron-te", 4096, 1, numerics("megatron"), shard=2, zero_stage=1, tensor=4,
                     accumulate=4)  # fmt: skip


def test_a_step_of_llama_8b_is_added_up_as_by_hand() -> None:
    """12 bytes a parameter over 8 (no gradients yet in the loss); per layer and token its input and output, queries,
    attention's output, values and the gate's product; three fp32 tensors of logits; a gathered layer and the tables."""
    parameters, tokens, tables = 8_030_261_248, 2 * 8192, 2 * 128256 * 4096
    layer = (parameters - tables - 4096) / 32
    found = memory(LLAMA, FSDP, cluster("8xH100"))
    assert found.categories["parameters"].value == 4 * parameters / 8
    assert found.categories["optimizer"].value == 8 * parameters / 8
    assert found.categories["logits"].value == 12 * tokens * 128256
    per_token = 2 * (2 * 4096 + 2 * 4096 + 1024 + 14336)
    last_norm = 4 * 4096
    assert found.categories["activations"].value == 32 * tokens * per_token + tokens * last_norm
    assert found.categories["communication"].value == pytest.approx(2 * (layer + tables))


def test_allocated_is_the_sum_of_its_categories_and_lies_in_their_interval() -> None:
    found = memory(LLAMA, FSDP, cluster("8xH100"))
    assert found.allocated.value == pytest.approx(sum(each.value for each in found.categories.values()))
    for figure in (*found.categories.values(), found.allocated, found.reserved, found.used):
        assert figure.low <= figure.value <= figure.high
    assert found.allocated.value < found.reserved.value < found.used.value


def test_ddp_keeps_its_gradients_twice_unless_they_are_views_of_its_buckets() -> None:
    copied = memory(SMALL, DDP, cluster("8xA100-40"))
    viewed = memory(SMALL, replace(DDP, is_bucket_view=True), cluster("8xA100-40"))
    alone = memory(SMALL, replace(DDP, replicate=1), cluster("1xA100-40"))
    assert copied.categories["communication"].value == pytest.approx(2 * SMALL.parameters)
    assert viewed.categories["communication"].value == 0
    # In the loss the gradients are not made yet, but the buckets are there.
    assert copied.allocated.value - alone.allocated.value == pytest.approx(2 * SMALL.parameters)


def test_a_billion_parameters_on_a_40_gib_card_take_what_people_saw() -> None:
    """29.8 GB on one device, 32.0 under DDP, 22.1 under FSDP (litgpt, eager, micro-batch 4). The differences say bf16
    throughout; that gradients are accumulated is taken from the recipe."""
    on = cluster("8xA100-40")
    eager = replace(DDP, accumulate=8)
    seen = {
        32.0: memory(SMALL, eager, on),
        29.8: memory(SMALL, replace(eager, replicate=1), cluster("1xA100-40")),
        22.1: memory(SMALL, replace(eager, replicate=1, shard=8, zero_stage=3), on),
    }
    for gigabytes, found in seen.items():
        assert found.allocated.value / 1e9 == pytest.approx(gigabytes, rel=0.06)
        assert found.allocated.low < gigabytes * 1e9 < found.used.high
        assert found.fit != Fit.DOES_NOT


def test_full_checkpointing_keeps_layer_inputs_and_one_layer() -> None:
    found = memory(LLAMA, replace(FSDP, checkpointing="full"), cluster("8xH100"))
    assert found.categories["activations"].value == pytest.approx(2 * 16384 * 4096 * (32 + 2))
    kept = memory(LLAMA, replace(FSDP, checkpointing="none"), cluster("8xH100"))
    assert kept.categories["activations"].value > 4 * found.categories["activations"].value


def test_a_stage_in_front_keeps_more_micro_batches_and_the_last_one_the_logits() -> None:
    laid = replace(MEGATRON, tensor=1, shard=1, pipeline=8, accumulate=32)
    assert memory(LLAMA, laid, cluster("8xH100")).stage == 0
    last = memory(LLAMA, replace(laid, checkpointing="full"), cluster("8xH100"))
    assert last.stage == 7
    assert last.categories["logits"].value > 0


def test_tensor_ranks_divide_everything_but_what_is_fixed() -> None:
    one = memory(LLAMA, replace(MEGATRON, tensor=1, shard=1), cluster("1xH100"))
    four = memory(LLAMA, replace(MEGATRON, tensor=4, shard=1), cluster("4xH100"))
    for name in ("parameters", "activations", "logits"):
        assert four.categories[name].value == pytest.approx(one.categories[name].value / 4, rel=0.002)


def test_context_ranks_divide_activations_and_the_optimizer_but_no_parameters() -> None:
    one = memory(LLAMA, replace(MEGATRON, shard=1), cluster("4xH100"))
    two = memory(LLAMA, replace(MEGATRON, shard=1, context=2), cluster("8xH100"))
    assert two.categories["parameters"].value == one.categories["parameters"].value
    for name in ("activations", "logits", "optimizer"):
        assert two.categories[name].value == pytest.approx(one.categories[name].value / 2)


def test_fits_is_said_only_where_the_upper_bound_fits() -> None:
    for samples in range(1, 40):
        found = memory(SMALL, replace(DDP, micro_batch=samples), cluster("8xA100-40"))
        expected = (
            Fit.FITS if found.used.high <= found.limit_bytes
            else Fit.DOES_NOT if found.used.low > found.limit_bytes
            else Fit.TOO_CLOSE
        )  # fmt: skip
        assert found.fit is expected
    assert {memory(SMALL, replace(DDP, micro_batch=n), cluster("8xA100-40")).fit for n in range(1, 12)} == set(Fit)


def test_jax_has_three_quarters_of_a_gpu_unless_told_otherwise() -> None:
    jax = Candidate("", "jax", "jax", 2048, 1, numerics("bf16-mixed"), shard=8, zero_stage=3)
    sizes = {n: memory(SMALL, replace(jax, micro_batch=n), cluster("8xA100-40")) for n in range(1, 30)}
    between = [each for each in sizes.values() if 0.75 * each.limit_bytes < each.used.high <= each.limit_bytes]
    assert between
    assert all(each.fit is Fit.TOO_CLOSE for each in between)


def test_the_arithmetic_is_spelled_out_and_adds_up() -> None:
    said = terms(LLAMA, FSDP, cluster("8xH100"))
    names = [term.name for term in said]
    assert said[0].arithmetic == "4 B × 8.03 B parameters / 8 ranks = 3.74 GiB"
    assert all(term.arithmetic for term in said)
    running = 0.0
    for term in said:
        if term.name in ("allocated", "reserved", "used"):
            assert term.figure.value == pytest.approx(running)
        else:
            running += term.figure.value
    assert names[-1] == "used"
    # Streams of their own held the sharded gradients and the tables as they were received.
    for part in ("gradients, accumulated", "communication, root group as received"):
        assert f"held, not used: {part}" in names


def test_a_rank_on_a_cpu_has_no_slack_and_no_context_but_its_process() -> None:
    found = memory(SMALL, replace(DDP, replicate=4, micro_batch=1), cluster("4xcpu"))
    assert found.reserved.value == found.allocated.value
    assert "workspace" not in " ".join(term.name for term in terms(SMALL, DDP, cluster("8xcpu")))
    assert (found.used.value - found.reserved.value) / GIB == pytest.approx(0.36)


def test_a_tpu_has_neither_slack_nor_context() -> None:
    jax = Candidate("", "jax", "maxtext", 2048, 1, numerics("bf16-mixed"), shard=8, zero_stage=3, checkpointing="full")
    found = memory(SMALL, jax, cluster("8xTPUv5e"))
    assert found.reserved.value == found.allocated.value
    assert "NCCL" not in " ".join(term.name for term in terms(SMALL, jax, cluster("8xTPUv5e")))


def test_experts_that_do_not_spread_are_refused() -> None:
    mixture = preset("mixtral-8x7b").architecture
    with pytest.raises(NotCovered, match="8 experts do not divide over 3 ranks"):
        memory(mixture, replace(MEGATRON, shard=6, tensor=1, expert=3), cluster("6xH100"))
