"""A JAX model of the user's own, flax or plain functions, as every script trains it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import own
from options import Options
from refusals import OptionError

_HINT = "JAX strategies take (init, loss, batch) or flax's (module, batch); for a torch module name ddp or fsdp."
Init = Callable[[jax.Array], Any]
Loss = Callable[[Any, tuple[jax.Array, ...], jax.Array], jax.Array]


def own_functions(options: Options) -> tuple[Init, Loss]:
    """``init`` and ``loss`` as :class:`models.flax_models.Model` has them. OptionError: the factory is not for JAX."""
    if options.checkpoint_activations:
        raise OptionError(
            "A JAX model of your own says itself what it computes again.",
            "Leave --checkpoint-activations out, and use jax.checkpoint within the model.",
        )
    found = own.made(options.model)
    form = own.batch(options.model)
    if own.is_plain(found) and len(found) == 3:
        init, loss = found[:2]

        def drawn(params: Any, batch: Any, _: jax.Array) -> Any:
            return loss(params, **batch) if isinstance(batch, dict) else loss(params, *_arguments(batch))

        return init, _checked(options, form, drawn)
    module = found[0]
    if not (hasattr(module, "init") and hasattr(module, "apply")):
        raise own.of_another_framework(options.model, module, "a flax module or an init function", _HINT)
    return _of_flax(options, module, form, found[2] if len(found) == 3 else None)


def _of_flax(options: Options, module: Any, form: Any, loss: Callable[[Any, Any], Any] | None) -> tuple[Init, Loss]:
    def called(call: Callable[..., Any], first: Any, batch: Any, **more: Any) -> Any:
        if isinstance(batch, dict):
            return call(first, **batch, **more)
        given = _arguments(batch)
        return call(first, *(given[:-1] if loss is not None else given), **more)

    def init(key: jax.Array) -> Any:
        return called(module.init, key, jax.tree.map(jnp.asarray, form))

    def applied(params: Any, batch: Any, key: jax.Array) -> Any:
        output = called(module.apply, params, batch, rngs={"dropout": key})
        return output if loss is None else loss(output, batch if isinstance(batch, dict) else batch[-1])

    return init, _checked(options, form, applied)


def _checked(options: Options, form: Any, loss: Callable[[Any, Any, jax.Array], Any]) -> Loss:
    """A loss of arrays side by side. OptionError when it is traced and is no number."""

    def of(params: Any, arrays: tuple[jax.Array, ...], key: jax.Array) -> jax.Array:
        found = loss(params, own.rebuilt(form, iter(arrays)), key)
        if jnp.size(found) != 1:
            raise OptionError(
                f"The loss of {options.model} is an array of {list(jnp.shape(found))}.", "Return its mean."
            )
        return jnp.reshape(found, ())

    return of


def _arguments(batch: Any) -> tuple[Any, ...]:
    return tuple(batch) if isinstance(batch, list | tuple) else (batch,)
