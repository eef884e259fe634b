"""Matrix products: tiles, waves, the inner dimension, and a device's best."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshscope.advisor.costs.matmul import Fit, Machine, filled, fit, machine, matmul, seconds
from meshscope.advisor.coverage import NotCovered
from meshscope.advisor.hardware import device

NOWHERE = Path("nowhere")
FOUR = Fit(share=1.0, begun_s=0.0, half_k=0.0, small_tile=1.0, units=4, tiles=((128, 128),))
FAST_MEMORY = Machine(1e12, 1e12, 1e18, 2.0)


@pytest.mark.parametrize(
    ("m", "n", "count", "share"),
    [
        (256, 256, 1, 1.0),  # four tiles, four units
        (384, 256, 1, 6 / 8),  # six tiles: the second wave is half empty
        (128, 128, 1, 1 / 4),
        (128, 128, 4, 1.0),
        (129, 256, 1, 129 / 256),  # the second row of tiles has one row of work
    ],
)
def test_tiles_and_waves_that_are_not_full_cost_as_if_they_were(m: int, n: int, count: int, share: float) -> None:
    assert filled(FOUR, m, n, count) == pytest.approx(share)


def test_the_best_tile_is_taken_though_a_small_one_counts_for_less() -> None:
    both = Fit(share=1.0, begun_s=0.0, half_k=0.0, small_tile=0.9, units=4, tiles=((128, 128), (64, 64)))
    assert filled(both, 256, 256) == 1.0
    assert filled(both, 128, 128) == pytest.approx(0.9**2)


def test_a_product_takes_its_operations_over_the_rate() -> None:
    assert seconds(FOUR, FAST_MEMORY, 256, 256, 1000) == pytest.approx(2 * 256 * 256 * 1000 / 1e12)


def test_at_half_k_half_of_the_rate_is_reached() -> None:
    slow = Fit(share=1.0, begun_s=0.0, half_k=1000.0, small_tile=1.0, units=4, tiles=((128, 128),))
    assert seconds(slow, FAST_MEMORY, 256, 256, 1000) == pytest.approx(2 * 2 * 256 * 256 * 1000 / 1e12)


def test_no_product_passes_the_best_that_anybody_measured() -> None:
    eager = Fit(share=3.0, begun_s=0.0, half_k=0.0, small_tile=1.0, units=4, tiles=((128, 128),))
    assert seconds(eager, FAST_MEMORY, 256, 256, 1000) == pytest.approx(2 * 256 * 256 * 1000 / 1e12)
    for name in ("A100", "H100", "H200", "B200", "GB200", "MI300X", "TPU7x"):
        spec = device(name, NOWHERE)
        for compute, most in spec.measured_flops_per_s.items():
            assert 2.0 * 65536**3 / matmul(spec, 65536, 65536, 65536, compute).value <= most


def test_thin_products_take_what_their_operands_take_to_move() -> None:
    slow_memory = Machine(1e15, 1e15, 1e9, 2.0)
    moved_bytes = 2 * (1000 * 16 + 16 * 16 + 1000 * 16)
    assert seconds(FOUR, slow_memory, 1000, 16, 16) == pytest.approx(moved_bytes / 1e9, rel=1e-6)


def test_a_device_that_lacks_a_type_is_not_covered() -> None:
    with pytest.raises(NotCovered, match="A100-80GB does not multiply in fp8") as refused:
        matmul(device("A100", NOWHERE), 4096, 4096, 4096, "fp8")
    assert "bf16" in refused.value.hint


def test_dies_share_a_product() -> None:
    spec = device("TPU7x", NOWHERE)
    assert machine(spec, "bf16", fit("tpu", "bf16")).best_flops_per_s == 2307e12 / 2
    assert matmul(spec, 32768, 16384, 16384, "bf16").value == pytest.approx(
        seconds(fit("tpu", "bf16"), machine(spec, "bf16", fit("tpu", "bf16")), 16384, 16384, 16384)
    )


PUBLISHED = [
    # Azure AI-benchmarking-guide (cuBLASLt, sustained), AI-Hypercomputer/accelerator-microbenchmarks: TFLOP/s.
    ("A100", "fp16", 8192, 8192, 8192, 253.7),
    ("A100", "fp16", 6144, 12288, 12288, 250.8),
    ("A100", "fp16", 802816, 192, 768, 157.8),
    ("H100", "fp8", 8192, 8192, 8192, 1290.1),
    ("H100", "fp8", 16384, 16384, 16384, 1377.3),
    ("H200", "fp8", 6144, 12288, 12288, 1318.0),
    ("TPU7x", "bf16", 2 * 16384, 16384, 16384, 2 * 950.13),
]


@pytest.mark.parametrize(("name", "compute", "m", "n", "k", "tera"), PUBLISHED)
def test_published_products_are_met(name: str, compute: str, m: int, n: int, k: int, tera: float) -> None:
    figure = matmul(device(name, NOWHERE), m, n, k, compute)
    assert 2.0 * m * n * k / figure.value == pytest.approx(tera * 1e12, rel=0.08)


@pytest.mark.parametrize("name", ["A100-PCIe-40GB", "H100-96GB", "H100-PCIe", "B300", "GB300", "RTX 4090", "v4", "cpu"])
@pytest.mark.parametrize("compute", ["bf16"])
def test_every_device_multiplies(name: str, compute: str) -> None:
    figure = matmul(device(name, NOWHERE), 8192, 8192, 8192, compute)
    peak = device(name, NOWHERE).peak_flops_per_s[compute]
    assert 0.35 < 2.0 * 8192**3 / figure.value / peak < 1.0


@given(
    name=st.sampled_from(["A100", "H100", "B200", "v5p", "cpu"]),
    m=st.integers(1, 100_000),
    n=st.integers(1, 100_000),
    k=st.integers(1, 100_000),
)
def test_a_longer_inner_dimension_is_never_quicker_and_lies_in_its_interval(name: str, m: int, n: int, k: int) -> None:
    spec = device(name, NOWHERE)
    short, long = matmul(spec, m, n, k, "bf16"), matmul(spec, m, n, 2 * k, "bf16")
    assert 0 < short.low < short.value < short.high
    assert long.value >= short.value


def test_nothing_to_multiply_takes_no_time() -> None:
    assert matmul(device("A100", NOWHERE), 0, 4096, 4096, "bf16").value == 0.0
