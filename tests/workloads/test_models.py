"""Models beside the transformer: each learns the same under every strategy of a framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

# As in test_training: the same sums in another order, passed on by AdamW.
LOSS_TOLERANCE = 1e-5
# Sums in another order may send a token to another expert.
LOOSER = {"moe": 3e-5}

CPU = ("--device", "cpu")
FLAGS = {
    "moe": (*CPU, "--model", "moe", "--layers", "2", "--width", "64", "--vocab", "512", "--seq", "32", "--steps", "6"),
    "resnet50": (*CPU, "--model", "resnet50", "--width", "8", "--image", "32", "--classes", "10", "--batch", "8",
                 "--steps", "4", "--lr", "1e-4"),
    "mlp": (*CPU, "--model", "mlp", "--width", "64", "--batch", "8", "--steps", "6"),
    "own": (*CPU, "--model", "mine:with_a_loss", "--steps", "6"),
    "own functions": (*CPU, "--model", "mine:of_functions", "--steps", "6"),
    "own flax": (*CPU, "--model", "mine:of_flax", "--steps", "6"),
}  # fmt: skip
TORCH, JAX = ("torch_ddp", "torch_zero1", "torch_fsdp"), ("jax_pmap", "jax_shard_map", "jax_pjit")
MATRIX = [
    *((script, model, ()) for script in (*TORCH, *JAX) for model in ("moe", "mlp")),
    *((script, "resnet50", ()) for script in (*TORCH, "jax_pjit")),
    *((script, "own", ()) for script in TORCH),
    *((script, "own functions", ()) for script in JAX),
    ("jax_pjit", "own flax", ()),
    *(("torch_fsdp1", model, ()) for model in ("moe", "own")),
    *(("jax_shard_map_fsdp", model, ()) for model in ("moe", "own functions")),
    *((script, "moe", flags) for script in ("torch_ep", "jax_ep") for flags in ((), ("--accumulate", "2"))),
    ("torch_ep", "moe", ("--checkpoint-activations",)),
    ("torch_fsdp", "resnet50", ("--checkpoint-activations",)),
    ("torch_fsdp", "own", ("--wrap", "Layer", "--checkpoint-activations", "--accumulate", "2")),
    ("torch_fsdp", "mlp", ("--wrap", "size:0.05")),
    ("jax_pjit", "mlp", ("--checkpoint-activations", "--accumulate", "2")),
]

Train = Callable[..., Any]


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize(("script", "model", "flags"), MATRIX)
def test_the_loss_curve_is_that_of_a_single_device(
    train: Train, script: str, model: str, flags: tuple[str, ...]
) -> None:
    single = train(f"{script.partition('_')[0]}_single", 1, *FLAGS[model])
    trained = train(script, 2, *FLAGS[model], *flags)
    np.testing.assert_allclose(trained.losses, single.losses, rtol=LOOSER.get(model, LOSS_TOLERANCE))


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("script", ["torch_single", "jax_single"])
@pytest.mark.parametrize(
    ("flags", "least"),
    [
        (("--model", "moe", "--layers", "2", "--width", "64", "--vocab", "512", "--seq", "32", "--data", "text"), 1.0),
        (("--model", "tiny", "--layers", "2", "--width", "64", "--vocab", "256", "--seq", "32", "--data", "text"), 1.0),
        (("--model", "mlp", "--width", "64", "--image", "8", "--classes", "10", "--data", "digits"), 0.5),
        (("--model", "mlp", "--width", "64", "--image", "8", "--classes", "10"), 0.1),
    ],
)
def test_the_loss_falls_on_the_data_that_are_asked_for(
    train: Train, need: Callable[..., None], script: str, flags: tuple[str, ...], least: float
) -> None:
    need(*(("sklearn",) if "digits" in flags else ()))
    losses = train(script, 1, *CPU, *flags, "--steps", "40", "--lr", "3e-3").losses
    assert np.mean(losses[-5:]) < np.mean(losses[:2]) - least
