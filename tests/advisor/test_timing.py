"""Predicted steps: the parts add up, and what costs more takes longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.forecast import TimeForecast
from meshscope.advisor.hardware import cluster
from meshscope.advisor.multipliers import Multipliers
from meshscope.advisor.numerics import numerics
from meshscope.advisor.operations import stages
from meshscope.advisor.presets import preset
from meshscope.advisor.prices import Prices
from meshscope.advisor.replay import Repeat, play
from meshscope.advisor.stacks import of
from meshscope.advisor.steps import Step
from meshscope.advisor.timing import timing, usual_speed

PLAIN = Candidate("FSDP", "torch", "torchtitan", 4096, 2, numerics("bf16-mixed"), accumulate=2)
SHARDED = replace(PLAIN, shard=8, zero_stage=3)
LAID = {
    "ddp": replace(PLAIN, replicate=8, stack="torch"),
    "zero-1": replace(PLAIN, shard=8, zero_stage=1, stack="megatron-te"),
    "fsdp": SHARDED,
    "hsdp": replace(PLAIN, shard=4, replicate=2, zero_stage=3),
    "tensor": replace(PLAIN, tensor=4, replicate=2),
    "pipeline": replace(PLAIN, pipeline=4, replicate=2, accumulate=8, stack="megatron-te"),
    "interleaved": replace(PLAIN, pipeline=4, virtual=2, schedule="interleaved", replicate=2, accumulate=8),
    "context": replace(PLAIN, context=2, shard=4, zero_stage=3),
    "jax": replace(SHARDED, framework="jax", stack="maxtext", is_compiled=True),
}


def forecast(laid: Candidate, model: str = "7b", devices: str = "8xH100", **factors: float) -> TimeForecast:
    return timing(preset(model).architecture, laid, cluster(devices), Multipliers(**factors))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LAID)
def test_compute_exposed_bubble_and_idle_make_up_the_step(name: str):
    found = forecast(LAID[name])
    parts = (found.compute_s, found.exposed_s, found.bubble_s, found.idle_s)
    assert sum(parts) == pytest.approx(found.step_s.value, rel=1e-6)
    assert min(parts) >= 0
    assert found.exposed_s == pytest.approx(sum(found.exposed_by.values()))
    assert found.step_s.low < found.step_s.value < found.step_s.high


@pytest.mark.parametrize("name", LAID)
def test_a_device_is_busy_for_a_believable_share_of_its_peak(name: str):
    assert 0.15 < forecast(LAID[name]).mfu_frac < 0.65


@pytest.mark.parametrize("name", ["ddp", "zero-1", "fsdp", "hsdp", "tensor", "context", "jax"])
@pytest.mark.parametrize("tokens", [4096, 64])
def test_a_step_that_skips_its_repeated_layers_is_the_step_that_plays_them(name: str, tokens: int):
    """With few tokens the host sets the pace, with many the device."""
    laid, on = replace(LAID[name], seq_len=tokens, accumulate=5), cluster("8xH100")
    (stage,) = stages(preset("7b").architecture, laid)
    prices = Prices(on, "bf16", usual_speed(laid, on), Multipliers())
    step = Step(stage, laid, of(laid.stack), prices)
    each = (*step.forward(), *step.backward(reduces=True))
    program = Repeat((Repeat(each, laid.accumulate), *step.ending()))
    skipped = play(program, contention=1.2)
    whole = play(program, contention=1.2, is_folded=False)
    assert skipped.lanes == pytest.approx(whole.lanes, rel=1e-6)
    assert skipped.busy == pytest.approx(whole.busy, rel=1e-6)


def test_more_micro_batches_take_as_much_longer_as_one_takes():
    one, two, nine = (forecast(replace(SHARDED, accumulate=many)).step_s.value for many in (1, 2, 9))
    assert nine - one == pytest.approx(8 * (two - one), rel=1e-3)


def test_checkpointing_costs_about_a_third():
    ratio = forecast(replace(SHARDED, checkpointing="full")).step_s.value / forecast(SHARDED).step_s.value
    assert 1.2 < ratio < 1.4


def test_the_slower_network_exposes_more():
    far = replace(SHARDED, shard=32, micro_batch=1)
    fast, slow = (forecast(far, devices=f"4x8xH100@{gbit}") for gbit in (400, 50))
    assert slow.exposed_by["shard"] > 4 * fast.exposed_by["shard"]


def test_a_measured_factor_multiplies_its_own_term_only():
    usual, slower = forecast(SHARDED), forecast(SHARDED, matmul=1.5)
    products = sum(term.figure.value * term.times for term in usual.terms if term.arithmetic.endswith("FLOP in bf16"))
    assert slower.compute_s - usual.compute_s == pytest.approx(0.5 * products, rel=0.02)


def test_every_term_says_how_often_it_happens():
    found = {term.name: term for term in forecast(SHARDED).terms}
    assert found["query, key, value"].times == 32 * 2
    assert found["all_gather"].times == 32 * 2 * 2
    assert found["reduce_scatter"].times == 32 * 2
    assert found["optimizer"].times == 1


def test_a_pipeline_s_terms_name_what_stages_send():
    found = {term.name: term for term in forecast(LAID["pipeline"]).terms}
    assert found["send"].times == 2 * 8
    assert found["bubble"].figure.value > 0


def test_a_device_that_does_not_multiply_so_is_refused():
    with pytest.raises(NotCovered, match="fp8"):
        forecast(replace(SHARDED, numerics=numerics("fp8")), devices="8xA100")
