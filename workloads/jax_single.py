# /// script
# requires-python = ">=3.11"
# dependencies = ["jax>=0.6", "flax>=0.10", "optax>=0.2.4", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "jax-single"
# title = "JAX on one device: where everybody starts, and what scaling is measured against"
# framework = "jax"
# launch = "process"
# max_ranks = 1
# baseline = true
# ///
"""Trains a model with JAX on one device.

python workloads/jax_single.py --model tiny --steps 5
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from batches import micro_batches
from devices import jax_compiler_options, jax_device
from injecting import JaxFaults
from models.flax_models import build
from options import Options, by_hand, check
from watching import Watch


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step."""
    check(options, ranks=1, strategy="jax-single")
    device = jax_device(options)

    model = build(options)
    adamw = optax.adamw(options.lr, b1=0.9, b2=0.95, weight_decay=0.1)
    faults = JaxFaults(options)

    def init(key: jax.Array) -> tuple[Any, Any]:
        params = model.init(key)
        return params, adamw.init(params)

    def update(params: Any, opt_state: Any, batch: Any) -> tuple[Any, Any, jax.Array]:
        step_key = jax.random.fold_in(key, optax.tree.get(opt_state, "count"))
        loss, gradients = accumulate_gradients(params, batch, step_key)
        with jax.named_scope("optimizer"):
            updates, opt_state = adamw.update(gradients, opt_state, params)
            return optax.apply_updates(params, updates), opt_state, loss

    def accumulate_gradients(params: Any, batch: Any, key: jax.Array) -> Any:
        def add(total: Any, part_of_batch: tuple[Any, jax.Array]) -> tuple[Any, None]:
            micro_batch, key = part_of_batch
            part = jax.value_and_grad(model.loss)(params, micro_batch, key)
            return jax.tree.map(lambda t, p: t + p / options.accumulate, total, part), None

        nothing = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
        return jax.lax.scan(add, nothing, (batch, jax.random.split(key, options.accumulate)))[0]

    def fetch(step: int) -> tuple[jax.Array, ...]:
        batch = micro_batches(options, step)
        return jax.device_put(batch, device)

    key = jax.random.key(options.seed)
    params, opt_state = jax.jit(init)(key)
    with watch.compiling("the training step"):
        jitted = jax.jit(update, donate_argnums=(0, 1))
        compiled = jitted.lower(params, opt_state, fetch(0)).compile(jax_compiler_options(options))
    watch.started(parameters=lambda: params, optimizer=lambda: opt_state, compiled=compiled)

    program = faults.program(compiled, jitted)
    losses = []
    for step in range(options.steps):
        with watch.step(step):
            batch = watch.batch(partial(fetch, step))
            params = faults.strike(step, params)
            params, opt_state, loss = program(params, opt_state, batch)
            losses.append(watch.loss(loss))
    watch.finished()
    return losses


if __name__ == "__main__":
    by_hand(train, Watch())
