"""Which JAX model is trained. Every script builds its model here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from families import MLP, MOE, ON_IMAGES, OWN, RESNET, TRANSFORMER, family
from models.flax_images import Mlp, ResNet50
from models.flax_moe import MoeTransformer
from models.flax_transformer import Transformer
from models.jax_own import own_functions
from options import Options
from sizes import CHANNELS

_MODULES: dict[str, Callable[..., nn.Module]] = {
    TRANSFORMER: Transformer,
    MOE: MoeTransformer,
    RESNET: ResNet50,
    MLP: Mlp,
}


@dataclass(frozen=True)
class Model:
    """``init(key)`` draws parameters; ``loss(params, micro_batch, key)`` is the mean loss, the key for dropout."""

    init: Callable[[jax.Array], Any]
    loss: Callable[[Any, tuple[jax.Array, ...], jax.Array], jax.Array]


def build(options: Options, **parts: Any) -> Model:
    """The model that is asked for, with ``parts`` of it made in another way. By itself it knows nothing of meshes."""
    kind = family(options)
    if kind == OWN:
        return Model(*own_functions(options))
    module = _MODULES[kind](options, **parts)
    inputs = _zeros(options, is_images=kind in ON_IMAGES)

    def init(key: jax.Array) -> Any:
        return module.init(key, *inputs)

    def loss(params: Any, micro_batch: tuple[jax.Array, ...], key: jax.Array) -> jax.Array:
        found: jax.Array = module.apply(params, *micro_batch, rngs={"dropout": key})
        return found

    return Model(init, loss)


def _zeros(options: Options, *, is_images: bool) -> tuple[jax.Array, ...]:
    """One sample."""
    if is_images:
        return jnp.zeros((1, options.image, options.image, CHANNELS)), jnp.zeros(1, jnp.int32)
    return (jnp.zeros((1, options.seq + 1), jnp.int32),)
