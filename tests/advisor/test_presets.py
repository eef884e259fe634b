"""Models by name: published numbers of parameters, and what no name stands for."""

from __future__ import annotations

import pytest

from meshscope.advisor.numerics import NUMERICS, numerics, state_bytes
from meshscope.advisor.presets import PRESETS, is_own, preset
from meshscope.capture.scripts import options_module
from meshscope.discovery import bundled
from meshscope.errors import InputError

PUBLISHED_BILLIONS = {
    "tiny-llama-1.1b": 1.100, "llama-2-7b": 6.738, "llama-3-8b": 8.030, "llama-2-13b": 13.016, "llama-30b": 32.5,
    "llama-65b": 65.2, "llama-2-70b": 68.98, "llama-3-70b": 70.55, "llama-3-405b": 405.9, "gpt-175b": 174.6,
    "gpt-39b": 39.1, "gpt-530b": 529.6, "gpt-1t": 1008.0, "mixtral-8x7b": 46.7, "deepseek-v3": 671.0,
    "qwen3-30b-a3b": 30.5, "qwen3-235b-a22b": 235.1, "bert-large": 0.335,
}  # fmt: skip
PUBLISHED_ACTIVE_BILLIONS = {"mixtral-8x7b": 12.9, "deepseek-v3": 37.0, "qwen3-30b-a3b": 3.3, "qwen3-235b-a22b": 22.1}


@pytest.mark.parametrize("name", PUBLISHED_BILLIONS)
def test_a_shape_has_as_many_parameters_as_its_paper_says(name: str) -> None:
    assert PRESETS[name].architecture.parameters / 1e9 == pytest.approx(PUBLISHED_BILLIONS[name], rel=0.006)


@pytest.mark.parametrize("name", PUBLISHED_ACTIVE_BILLIONS)
def test_a_token_passes_as_many_of_a_mixture_as_its_paper_says(name: str) -> None:
    active = PRESETS[name].architecture.active_parameters / 1e9
    assert active == pytest.approx(PUBLISHED_ACTIVE_BILLIONS[name], rel=0.02)


@pytest.mark.parametrize("name", ["tiny", "125m", "350m", "1.3b"])
def test_a_bundled_model_is_what_the_workload_trains(name: str) -> None:
    module = options_module(bundled("workloads"))
    found = preset(name)
    assert found.architecture.parameters == module.parameter_count(module.PRESETS[name])
    assert found.seq_len == module.PRESETS[name].seq


@pytest.mark.parametrize(
    ("text", "name"),
    [("7b", "llama-2-7b"), ("Llama2-7B", "llama-2-7b"), ("6.7b", "gpt-6.7b"), ("70B", "llama-3-70b"),
     ("1.1b", "tiny-llama-1.1b"), ("mixtral 8x7b", "mixtral-8x7b"), ("llama-3.1-405b", "llama-3-405b")],
)  # fmt: skip
def test_a_model_is_known_by_what_people_call_it(text: str, name: str) -> None:
    assert (preset(text).name, preset(text).note) == (name, "")


def test_an_unpublished_size_is_computed_as_the_nearest_published_and_says_so() -> None:
    found = preset("20b")
    assert found.name == "gpt-18b"
    assert "20b" in found.note
    assert "gpt-18b, which has 18.4 billion" in found.note


def test_a_shape_can_be_spelled_out() -> None:
    """Two layers of 4·64² + 2·64 of attention and norms, and 3·64·128 of an MLP; two tables of 100·64; a norm."""
    found = preset("layers=2,d_model=64,heads=4,kv_heads=4,d_ff=128,vocab=100,seq=32")
    assert found.architecture.parameters == 2 * (4 * 64**2 + 2 * 64 + 3 * 64 * 128) + 2 * 100 * 64 + 64
    assert (found.seq_len, found.note) == (32, "")


def test_what_a_spelled_shape_leaves_out_is_said() -> None:
    assert "heads 2, d_ff 768, vocab 32,000" in preset("layers=2,d_model=256").note


@pytest.mark.parametrize(
    "text", ["foo", "9t", "layers=2", "layers=2,d_model=100,heads=3", "layers=0,d_model=64", "layers=2,d_model=64,x=1",
             "layers=2,d_model=64,heads=4,kv_heads=3", "layers=-2,d_model=64", "0b", "", "layers=2,d_model=\x1b"],
)  # fmt: skip
def test_what_is_no_model_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(InputError) as refused:
        preset(text)
    assert refused.value.hint


def test_a_factory_is_no_preset() -> None:
    assert is_own("package.module:factory")
    assert not is_own("layers=2")


@pytest.mark.parametrize(("name", "each"), [("bf16-mixed", 16), ("bf16-pure", 8), ("megatron", 18), ("fp32", 16)])
def test_the_state_takes_as_many_bytes_per_parameter_as_published(name: str, each: int) -> None:
    assert state_bytes(NUMERICS[name]) == each


def test_an_unknown_precision_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InputError) as refused:
        numerics("bf61-mixed")
    assert "bf16-mixed" in refused.value.hint
