"""Attention and what only moves bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from meshscope.advisor.cluster import DeviceSpec
from meshscope.advisor.costs.attention import attention, forward_flop
from meshscope.advisor.costs.memory_bound import bytes_moved
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.hardware import device

NOWHERE = Path("nowhere")
BARE = DeviceSpec("bare", 1e9, {"bf16": 1e15}, 1e12, attention_flops_per_s=1e14)


def test_attention_multiplies_queries_by_keys_and_scores_by_values() -> None:
    # 2 samples, 3 tokens, 5 heads of 7: two products of 2 x 3 x 3 x 7 for each, half of it under a causal mask.
    assert forward_flop(2, 3, 5, 7, is_causal=False) == 2 * 5 * 2 * (2 * 3 * 3 * 7)
    assert forward_flop(2, 3, 5, 7, is_causal=True) == 2 * 5 * (2 * 3 * 3 * 7)


def test_long_sequences_reach_the_devices_rate() -> None:
    s = 1 << 20
    figure = attention(BARE, 1, s, 8, 128, is_causal=False)
    assert figure.value == pytest.approx(4.0 * s * s * 8 * 128 / 1e14, rel=1e-3)


def test_a_causal_mask_saves_less_than_half_of_a_short_sequence() -> None:
    saved = {s: attention(BARE, 64, s, 64, 128).value / attention(BARE, 64, s, 64, 128, is_causal=False).value
             for s in (512, 65536)}  # fmt: skip
    assert saved[512] == pytest.approx(0.5 * (1 + 128 / 512), rel=0.02)
    assert saved[65536] == pytest.approx(0.5, rel=0.01)


def test_backward_multiplies_two_and_a_half_times_as_much_at_three_quarters_of_the_rate() -> None:
    forward, backward = (attention(BARE, 8, 65536, 32, 128, is_backward=b).value for b in (False, True))
    assert backward / forward == pytest.approx(2.5 / 0.75, rel=0.01)


SIMUMAX = [  # heads, tokens, backward, microseconds: MooreThreads/SimuMax b200 system file
    (16, 4096, False, 106), (32, 4096, False, 167), (64, 4096, False, 280), (128, 4096, False, 490),
    (16, 4096, True, 202), (32, 4096, True, 384), (64, 4096, True, 837), (128, 4096, True, 1469),
    (16, 32768, False, 3355), (16, 32768, True, 11212),
]  # fmt: skip


@pytest.mark.parametrize(("heads", "tokens", "is_backward", "us"), SIMUMAX)
def test_attention_timed_on_b200_is_met(heads: int, tokens: int, is_backward: bool, us: float) -> None:
    took_s = attention(device("B200", NOWHERE), 1, tokens, heads, 128, is_backward=is_backward).value
    assert took_s == pytest.approx(us * 1e-6, rel=0.12)


def test_narrow_types_attend_in_bf16() -> None:
    wide, narrow = (attention(device("H100", NOWHERE), 1, 4096, 32, 128, kind) for kind in ("bf16", "fp8"))
    assert wide == narrow


def test_wider_types_attend_more_slowly() -> None:
    half, full = (attention(device("A100", NOWHERE), 1, 4096, 32, 128, kind).value for kind in ("bf16", "tf32"))
    assert 1.9 < full / half < 2.1


def test_a_device_without_a_peak_is_not_covered() -> None:
    with pytest.raises(NotCovered):
        attention(device("v5e", NOWHERE), 1, 4096, 32, 128, "fp16")


def test_bytes_take_what_was_measured_or_a_share_of_the_datasheet() -> None:
    measured = bytes_moved(device("H100", NOWHERE), 3.0e12)
    assert (measured.value, measured.source) == (pytest.approx(1.0), "measured")
    shared = bytes_moved(replace(BARE, sources={}), 0.87e12)
    assert (shared.value, shared.source) == (pytest.approx(1.0), "datasheet")
    assert measured.low < measured.value < measured.high
    assert measured.high / measured.value < shared.high / shared.value


def test_memory_of_which_nobody_told_the_rate_is_not_covered() -> None:
    with pytest.raises(NotCovered):
        bytes_moved(replace(BARE, memory_bytes_per_s=0.0), 1.0)
