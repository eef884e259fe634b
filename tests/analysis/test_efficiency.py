"""Model FLOPs, peaks, and claims that no device can keep."""

from __future__ import annotations

import math
from typing import Any

import pytest
from drawn import run, steps

from meshscope.analysis.claims import claim, judgement
from meshscope.analysis.efficiency import efficiency
from meshscope.analysis.model_flops import Shape, flops, least_flops, tied_shape
from meshscope.analysis.peaks import DEVICES, device
from meshscope.errors import InputError
from meshscope.recording.entries import RankStarted
from meshscope.reports.efficiency_text import claim_lines, efficiency_lines
from meshscope.run import Run

PRESETS = {"1.3b": tied_shape(layers=24, width=2048, vocab=50304, seq=1024)}
OPTIONS = {"layers": 24, "width": 2048, "vocab": 50304, "seq": 1024, "precision": "bf16"}


def judged(text: str) -> Any:
    return judgement(claim(text, PRESETS))


def test_a_claim_faster_than_the_peak_is_impossible_and_shows_its_arithmetic() -> None:
    found = judged("1.3b 8xA100 256x512 180ms")
    assert found.verdict == "impossible"
    assert 0.410 < found.bound.time_s < 0.460
    assert 0.410 < found.least.time_s < found.bound.time_s
    assert found.mfu_frac == pytest.approx(found.bound.time_s / 0.18)
    said = "\n".join(claim_lines(found))
    for part in ("6 × 1.313e9 + 6 × 24 × 2048 × 512", "8 × 3.12e14 = 2.496e15", "422 ms", "234.3 %"):
        assert part in said


def test_the_bound_is_what_a_hand_gets() -> None:
    found = judged("1.3b 8xA100 256x512 180ms")
    parameters = 24 * (12 * 2048**2 + 2 * 2048) + (50304 + 1024 + 1) * 2048
    flop = (6 * parameters + 6 * 24 * 2048 * 512) * 256 * 512
    assert found.bound.time_s == pytest.approx(flop / (8 * 312e12))


def test_a_time_that_has_been_measured_elsewhere_passes() -> None:
    assert judged("1.3b 8xA100 256x512 759ms").verdict == "possible"
    assert judged("1.3b 8xA100 256x512 450ms").verdict == "faster than any measured"


@pytest.mark.parametrize(
    "text",
    [
        "1.3B 8XA100 256X512 180MS",
        "180 ms, 256 × 512, 8 × A100-SXM4-80GB, 1.3 B params",
        "256x512 0.18s A100x8 1.3b bf16",
        "1.3b on 8 x NVIDIA A100 256x512 180ms/step",
    ],
)
def test_order_case_and_spaces_do_not_matter(text: str) -> None:
    found = judged(text)
    assert (found.verdict, found.claim.count, found.claim.batch, found.claim.seq) == ("impossible", 8, 256, 512)
    assert found.claim.time_s == pytest.approx(0.18)


def test_cards_that_are_called_by_a_number_are_no_tokens() -> None:
    for text in ("1.3b 8x4090 256x512 9s", "1.3b 256x512 8 x RTX 4090 9s"):
        found = judged(text).claim
        assert (found.device.name, found.count, found.batch) == ("RTX 4090", 8, 256)


def test_a_number_of_parameters_may_have_been_rounded() -> None:
    """By half of its last digit, and by a twentieth at most: nobody calls half a billion 1b."""
    assert judged("1.3b 8xA100 256x512 9s").claim.shape.layers == 24
    found = judged("2.74b 64xH100 1024x4096 9s")
    assert found.least.counted.parameters == pytest.approx(2.735e9)
    assert found.bound.counted.attention == 0
    assert judged("7b 64xH100 1024x4096 9s").least.counted.parameters == pytest.approx(6.65e9)
    assert judged("1b 8xA100 256x512 200ms").verdict == "impossible"
    assert judged("2b 8xA100 256x512 480ms").verdict == "impossible"


def test_without_a_measured_rate_most_of_the_peak_is_the_ceiling() -> None:
    """8 H200 at 0.85 of 989.4 TFLOP/s: 133 ms at the peak, 156 at the ceiling."""
    found = judged("1.3b 8xH200 256x512 140ms")
    assert found.verdict == "faster than any measured"
    assert found.is_ceiling_assumed
    assert found.ceiling.time_s == pytest.approx(found.bound.time_s / 0.85)
    assert judged("1.3b 8xH200 256x512 160ms").verdict == "possible"
    assert not judged("1.3b 8xA100 256x512 160ms").is_ceiling_assumed


def test_fp32_gets_the_faster_of_what_it_may_mean() -> None:
    assert judged("1.3b 8xA100 256x512 9s fp32").claim.precision == "tf32"
    assert judged("1.3b 8xV100 256x512 9s fp32").claim.precision == "fp32"
    assert judged("1.3b 8xV100 256x512 9s").claim.precision == "fp16"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lacks the model"),
        ("1.3b 8xA100", "lacks batch and sequence length (256x512), the time"),
        ("banana 8xA100 256x512 1s", "'banana' means nothing"),
        ("1.3b 8xFoo9000 256x512 1s", "no datasheet here for the device 'foo9000'"),
        ("1.3b 0xA100 256x512 1s", "0 makes no sense"),
        ("1.3b 8xA100 256x512 0ms", "0 makes no sense"),
        ("1.3b 8xA100 256x512 1s 2s", "'2s' means nothing"),
        ("1.3b 8xV100 256x512 1s bf16", "has no bf16"),
        ("1.3b 8xA100 256x512 99999999999999999999999s", "makes no sense"),
    ],
)
def test_a_claim_that_cannot_be_read_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        claim(text, PRESETS)
    assert said in refused.value.message
    assert refused.value.hint


def test_the_presets_are_counted_as_the_workloads_count_them() -> None:
    from meshscope.capture.scripts import options_module
    from meshscope.discovery import bundled

    module = options_module(bundled("workloads"))
    for name in ("tiny", "125m", "350m", "1.3b"):
        preset = module.PRESETS[name]
        shape = tied_shape(layers=preset.layers, width=preset.width, vocab=preset.vocab, seq=preset.seq)
        assert shape.parameters == module.parameter_count(preset)


def test_what_is_only_looked_up_multiplies_nothing() -> None:
    shape = Shape(parameters=100, uncounted=10, embedding=40, layers=2, width=3)
    assert (flops(shape, 5).matrices, least_flops(shape, 5).matrices) == (600, 540)
    assert (flops(shape, 5).attention, least_flops(shape, 5).attention) == (6 * 30, 6 * 30)
    assert shape.non_embedding == 60


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 SXM"), ("NVIDIA A100 80GB PCIe", "A100 PCIe"), ("NVIDIA A10", "A10"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"), ("NVIDIA H100 PCIe", "H100 PCIe"), ("NVIDIA H200", "H200"),
        ("NVIDIA GH200 480GB", "GH200"), ("NVIDIA B200", "B200"), ("NVIDIA GB200", "GB200"),
        ("Tesla V100-SXM2-16GB", "V100 SXM2"), ("Tesla T4", "T4"), ("NVIDIA L4", "L4"), ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"), ("AMD Instinct MI300X", "MI300X"), ("AMD Instinct MI250X", "MI250X"),
        ("TPU v4", "TPU v4"), ("TPU v5 lite", "TPU v5e"), ("TPU v5p", "TPU v5p"), ("TPU v6 lite", "TPU v6e"),
        ("TPUv5e", "TPU v5e"),
    ],
)  # fmt: skip
def test_a_device_is_known_by_the_name_that_frameworks_give_it(name: str, product: str) -> None:
    found = device(name)
    assert found is not None
    assert found.name == product


@pytest.mark.parametrize("name", ["NVIDIA A10G", "NVIDIA GeForce RTX 4090 D", "Tesla V100S-PCIE-32GB", "AMD EPYC", ""])
def test_another_product_of_a_like_name_is_not_taken_for_it(name: str) -> None:
    assert device(name) is None


def test_no_measured_rate_lies_above_its_datasheet() -> None:
    for known in DEVICES:
        assert known.measured_flops_per_s < max(known.peak_flops_per_s.values())
        assert known.source


def on(name: str, *, kind: str = "gpu", step_ms: float = 100.0, **about: Any) -> Run:
    started = [
        RankStarted(t_ns=0, rank=rank, device=rank, device_name=name, device_kind=kind, pid=1) for rank in (0, 1)
    ]
    known = {"options": OPTIONS, "global_batch": 4, "sequence_length": 1024, "device_kind": kind}
    return run([*started, *steps([step_ms - 2] * 12)], **(known | about))


def test_mfu_is_the_models_flops_over_the_datasheets_peak() -> None:
    found = efficiency(on("NVIDIA A100-SXM4-80GB"))
    per_token = 6 * PRESETS["1.3b"].parameters + 6 * 24 * 2048 * 1024
    assert found.flops_per_s == pytest.approx(per_token * 4096 / 2 / 0.099)
    assert found.mfu_frac == pytest.approx(found.flops_per_s / 312e12)
    assert found.measured_frac == pytest.approx(found.flops_per_s / 271.2e12)
    assert not found.is_impossible
    assert "MFU" in efficiency_lines(found)[0] + efficiency_lines(found)[1]


def test_a_long_sequence_is_counted_under_its_mask() -> None:
    """At 65 536 tokens attention is more than the matrices; really at 60 % of the peak, it is not beyond it."""
    options = {"layers": 24, "width": 2048, "vocab": 32000, "seq": 65536, "precision": "bf16"}
    shape = tied_shape(layers=24, width=2048, vocab=32000, seq=65536)
    per_token = 6 * shape.multiplied + 6 * 24 * 2048 * 65536
    step_s = per_token * 65536 / (0.6 * 312e12)
    found = efficiency(
        on("NVIDIA A100", step_ms=step_s * 2e3, options=options, global_batch=4, sequence_length=65536)
    )  # two ranks, two samples each: four times the tokens in twice the time
    assert 0.55 < found.mfu_frac < 0.65
    assert found.least_frac == pytest.approx(0.6, rel=0.01)
    assert not found.is_impossible


def test_a_run_that_says_more_than_the_peak_is_flagged() -> None:
    found = efficiency(on("NVIDIA A100-SXM4-80GB", step_ms=10))
    assert found.is_impossible
    assert "impossible" in " ".join(" ".join(efficiency_lines(found)).split())


def test_a_device_that_is_half_of_a_product_has_half_its_peak() -> None:
    assert efficiency(on("AMD Instinct MI250X")).peak_flops_per_s == 383e12 / 2


def test_fp32_is_tf32_where_it_is_multiplied_so() -> None:
    options = {"options": OPTIONS | {"precision": "fp32"}}
    assert efficiency(on("NVIDIA A100", **options)).peak_flops_per_s == 156e12
    assert efficiency(on("Tesla V100-SXM2-16GB", **options)).peak_flops_per_s == 15.7e12


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (on("AMD EPYC", kind="cpu"), "no datasheet peak is known for the CPU AMD EPYC"),
        (on("Frobnicator 3000"), "no datasheet peak is known for the device Frobnicator 3000"),
        (on("Tesla T4"), "no datasheet peak is known for T4 in bf16"),
        (on("NVIDIA A100", options={}), "the recording does not say the model"),
        (on("NVIDIA A100", global_batch=0), "the recording does not say the batch"),
        (on("", strategy=""), "a trace alone says neither the model nor the batch"),
    ],
)
def test_without_a_peak_or_a_model_there_is_no_mfu_and_a_reason(made: Run, why: str) -> None:
    found = efficiency(made)
    assert math.isnan(found.mfu_frac)
    assert found.why == why


def test_parameters_that_do_not_fit_the_options_count_alone() -> None:
    found = efficiency(on("NVIDIA A100", parameters=7))
    assert found.flops is not None
    assert (found.flops.matrices, found.flops.attention) == (42, 0)


SAMPLED = {"options": {"precision": "bf16"}, "sequence_length": 0, "parameters": 7, "flop_how": "by hand"}


def test_a_model_that_is_counted_per_sample_has_its_mfu_without_tokens() -> None:
    """Two ranks take four samples of 12 TFLOP in 99 ms: each does 24 TFLOP in that time."""
    found = efficiency(on("NVIDIA A100-SXM4-80GB", flop_per_sample=12e12, step_ms=100.0, **SAMPLED))
    assert found.flops is None
    assert (found.tokens_per_step, found.flop_per_step) == (0, 48e12)
    assert found.flops_per_s == pytest.approx(24e12 / 0.099)
    assert found.mfu_frac == pytest.approx(24e12 / 0.099 / 312e12)
    assert not found.is_impossible
    said = " ".join(" ".join(efficiency_lines(found)).split())
    assert "(per sample 1.2e13: by hand); MFU 77.7 %" in said


def test_a_rate_that_no_pass_without_its_first_gradients_explains_is_impossible() -> None:
    """A third may be gradients of the inputs, which nobody needs: 1.4 times the peak is 0.93 of it, 1.6 times 1.07."""
    peak = 2 * 0.099 * 312e12 / 4
    assert not efficiency(on("NVIDIA A100", flop_per_sample=1.4 * peak, **SAMPLED)).is_impossible
    assert efficiency(on("NVIDIA A100", flop_per_sample=1.6 * peak, **SAMPLED)).is_impossible


def test_what_could_not_be_counted_is_never_guessed_from_the_parameters() -> None:
    found = efficiency(on("NVIDIA A100", flop_why="the loss loops", **SAMPLED | {"sequence_length": 1024}))
    assert found.flops is None
    assert math.isnan(found.mfu_frac)
    assert found.why == "the model's FLOPs are unknown: the loss loops"
    assert efficiency_lines(found) == ["  MFU: the model's FLOPs are unknown: the loss loops"]
