"""Models of a user's own, as ``--model mine:NAME`` finds them from this folder; some of them are wrong."""

from __future__ import annotations

from typing import Any


def with_a_loss() -> Any:
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.second(torch.relu(self.first(x)))

    module = nn.Sequential(Layer(), Layer(), nn.Linear(16, 1))
    x = torch.randn(12, 16)
    return module, (x, x.sum(1, keepdim=True)), nn.functional.mse_loss


def of_named_inputs() -> Any:
    import torch
    from torch import nn

    class Scored(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.Linear(8, 4)

        def forward(self, features: torch.Tensor, label: torch.Tensor, scale: float) -> dict[str, Any] | Any:
            return nn.functional.cross_entropy(self.weights(features) * scale, label)

    return Scored(), {"features": torch.randn(8, 8), "label": torch.arange(8) % 4, "scale": 2.0}


def of_functions() -> Any:
    import jax
    import jax.numpy as jnp

    def init(key: Any) -> Any:
        first, second = jax.random.split(key)
        return {"in": jax.random.normal(first, (16, 32)) / 4, "out": jax.random.normal(second, (32, 1)) / 4}

    def loss(params: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ params["in"]) @ params["out"] - y) ** 2)

    x = jax.random.normal(jax.random.key(0), (12, 16))
    return init, loss, (x, x.sum(1, keepdims=True))


def of_flax() -> Any:
    import jax
    import optax
    from flax import linen as nn

    x = jax.random.normal(jax.random.key(0), (12, 16))
    module = nn.Sequential([nn.Dense(32), nn.tanh, nn.Dense(1)])
    return module, (x, x.sum(1, keepdims=True)), lambda found, wanted: optax.squared_error(found, wanted).mean()


def loops() -> Any:
    import jax
    import jax.numpy as jnp

    def loss(params: Any, x: Any) -> Any:
        return jax.lax.scan(lambda total, row: (total + (row @ params) ** 2, None), 0.0, x)[0] / len(x)

    return lambda key: jax.random.normal(key, (4,)), loss, jnp.ones((8, 4))


def breaks_in_loss() -> Any:
    import jax.numpy as jnp

    def loss(params: Any, x: Any) -> Any:
        return jnp.sum(x @ params)

    return lambda _: jnp.ones((3, 3)), loss, jnp.ones((8, 4))


def raises() -> Any:
    return 1 / 0


def returns_a_list() -> Any:
    return [1, 2]


def returns_no_model() -> Any:
    import numpy as np

    return 3, np.zeros((4, 4))


def gives_no_loss() -> Any:
    import torch

    return torch.nn.Linear(4, 3), torch.zeros(8, 4)


def has_ragged_batch() -> Any:
    import torch

    return torch.nn.Linear(4, 1), (torch.zeros(8, 4), torch.zeros(3)), torch.nn.functional.mse_loss


not_a_function = 7
