"""How far a median of steps can be trusted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from measured import noisy

from meshscope.analysis.noise import block_length, level, resampled_medians, t_quantile


@pytest.mark.parametrize(("freedom", "quantile"), [(4, 4.604), (8, 3.355), (12, 3.055), (30, 2.750), (1000, 2.581)])
def test_the_quantile_is_students(freedom: int, quantile: float) -> None:
    assert t_quantile(0.99, freedom) == pytest.approx(quantile, rel=0.01)


def test_steps_that_follow_one_another_are_drawn_in_longer_blocks() -> None:
    lengths = [
        np.mean([block_length(np.array(noisy(seed, steps=400, phi=phi))) for seed in range(20)])
        for phi in (0, 0.5, 0.9)
    ]
    assert lengths[0] < 3
    assert lengths[0] < lengths[1] < lengths[2]
    assert lengths[2] > 10


def test_a_block_is_no_longer_than_a_third_of_the_series() -> None:
    assert block_length(np.arange(30.0)) <= 10
    assert block_length(np.ones(30)) == 1
    assert block_length(np.arange(2.0)) == 1


@pytest.mark.parametrize("phi", [0.0, 0.6])
def test_the_bootstrap_is_as_wide_as_medians_really_scatter(phi: float) -> None:
    medians = [math.log(np.median(noisy(seed, steps=300, phi=phi))) for seed in range(200)]
    told = np.mean([level(np.array(noisy(seed, steps=300, phi=phi))).se_log for seed in range(40)])
    assert told == pytest.approx(np.std(medians), rel=0.3)


def test_drawing_single_steps_would_call_a_median_surer_than_it_is() -> None:
    series = [np.array(noisy(seed, steps=300, phi=0.9)) for seed in range(20)]
    single = np.mean([resampled_medians(values, 1).std() for values in series])
    blocks = np.mean([resampled_medians(values, block_length(values)).std() for values in series])
    assert blocks > 2 * single


def test_a_run_that_slows_down_halfway_is_trusted_less() -> None:
    """Blocks see it where they are long enough, and the medians of quarters where they are not."""

    def unsure(steps_ms: list[float]) -> float:
        found = level(np.array(steps_ms))
        return math.hypot(found.se_log, found.drift_log)

    steady = noisy(1, phi=0)
    assert unsure(steady) < 0.01
    assert unsure([ms * (1 if at < 30 else 1.2) for at, ms in enumerate(steady)]) > 0.05
    assert unsure([ms * (1.1 if 15 <= at < 30 else 1) for at, ms in enumerate(steady)]) > 0.02


def test_the_same_steps_give_the_same_interval() -> None:
    values = np.array(noisy(7))
    assert level(values) == level(values)


def test_equal_steps_have_no_noise() -> None:
    found = level(np.full(20, 5.0))
    assert (found.median, found.se_log, found.drift_log) == pytest.approx((5.0, 0.0, 0.0), abs=1e-12)
