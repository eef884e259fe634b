"""What holds for every layout, whatever its numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.hardware import cluster
from meshscope.advisor.memory import memory, terms
from meshscope.advisor.numerics import NUMERICS
from meshscope.advisor.presets import preset

ON = cluster("64xH100")
MODELS = [preset(name).architecture for name in ("llama-3-8b", "mixtral-8x7b", "bert-large")]
STACKS = ("torch", "torchtitan", "composer", "deepspeed", "megatron-te", "megatron-nemo", "nanotron", "apex")


@st.composite
def candidates(draw: st.DrawFn) -> Candidate:
    pick = lambda *each: draw(st.sampled_from(each))  # noqa: E731
    stage = pick(0, 1, 2, 3)
    is_jax = draw(st.booleans())
    return Candidate(
        "", "jax" if is_jax else "torch", "jax" if is_jax else pick(*STACKS), pick(512, 4096), pick(1, 3),
        NUMERICS[pick(*NUMERICS)], accumulate=pick(1, 8), replicate=pick(1, 2), shard=pick(2, 8) if stage else 1,
        zero_stage=stage, tensor=pick(1, 4), is_sequence_parallel=draw(st.booleans()), pipeline=pick(1, 4),
        virtual=pick(1, 2), schedule=pick("1f1b", "gpipe"), context=pick(1, 2), expert=pick(1, 2),
        checkpointing=pick("none", "selective", "full"), is_compiled=draw(st.booleans()), is_flash=draw(st.booleans()),
        is_logits_chunked=draw(st.booleans()), is_bucket_view=draw(st.booleans()), prefetch=pick(0, 1, 3),
        reshards=draw(st.booleans()), optimizer=pick("adamw", "adam8bit", "lion", "adafactor", "muon", "sgd"),
    )  # fmt: skip


@settings(max_examples=6)
@given(st.sampled_from(MODELS), candidates())
def test_bounds_hold_their_value_and_the_terms_add_up(architecture, candidate) -> None:  # type: ignore[no-untyped-def]
    found = memory(architecture, candidate, ON)
    for figure in (*found.categories.values(), found.allocated, found.reserved, found.used):
        assert 0 <= figure.low <= figure.value <= figure.high
    assert found.allocated.value <= found.reserved.value <= found.used.value
    added = [term for term in terms(architecture, candidate, ON) if term.name not in ("allocated", "reserved", "used")]
    assert abs(sum(term.figure.value for term in added) - found.used.value) < 1


@pytest.mark.slow
@settings(max_examples=100)
@given(st.sampled_from(MODELS), candidates())
def test_more_samples_never_take_less_and_more_shards_never_more(architecture, candidate) -> None:  # type: ignore[no-untyped-def]
    found = memory(architecture, candidate, ON).allocated.value
    assert memory(architecture, replace(candidate, micro_batch=2 * candidate.micro_batch), ON).allocated.value >= found
    if candidate.zero_stage:
        assert memory(architecture, replace(candidate, shard=2 * candidate.shard), ON).allocated.value <= found


@pytest.mark.slow
@settings(max_examples=100)
@given(st.sampled_from(MODELS), candidates())
def test_computing_again_never_takes_more_than_a_layer_more(architecture, candidate) -> None:  # type: ignore[no-untyped-def]
    kept = memory(architecture, replace(candidate, checkpointing="none"), ON).allocated.value
    again = memory(architecture, replace(candidate, checkpointing="full"), ON).allocated.value
    one_layer = kept / architecture.layers * candidate.pipeline * 1.5
    assert again <= kept + one_layer
