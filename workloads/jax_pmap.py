# /// script
# requires-python = ">=3.11"
# dependencies = ["jax>=0.6", "flax>=0.10", "optax>=0.2.4", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "pmap"
# title = "JAX pmap: a full replica per device, gradients averaged with lax.pmean"
# framework = "jax"
# launch = "process"
# ///
"""Trains a model with JAX pmap: every device holds the whole model, and gradients are averaged.

    python workloads/jax_pmap.py --devices 4 --model tiny --steps 5

Parameters, optimizer state and tokens have one more axis in front, a row per device of this process; the step is
written for one row, and ``lax.pmean`` is where the devices meet. JAX calls pmap maintained but finished: new code
uses jit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np  # parallel
import optax

from batches import micro_batches
from devices import jax_compiler_options, jax_devices, own_rows  # parallel
from injecting import JaxFaults
from models.flax_models import build
from options import Options, by_hand, check
from watching import Watch


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step, over the global batch."""
    ranks = options.devices  # parallel
    check(options, ranks, "pmap")  # parallel
    devices = jax_devices(options)  # parallel
    own = own_rows(devices)  # parallel

    model = build(options)
    adamw = optax.adamw(options.lr, b1=0.9, b2=0.95, weight_decay=0.1)
    faults = JaxFaults(options)

    def init(key: jax.Array) -> tuple[Any, Any]:
        params = model.init(key)
        return params, adamw.init(params)

    def update(params: Any, opt_state: Any, batch: Any) -> tuple[Any, Any, jax.Array]:
        key = jax.random.fold_in(keys[jax.lax.axis_index("data")], optax.tree.get(opt_state, "count"))  # parallel
        loss, gradients = faults.averaged(accumulate_gradients(params, batch, key), jax.lax.pmean, "data")  # parallel
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
        batch = [micro_batches(options, step, rank, ranks) for rank in own]  # parallel
        return jax.tree.map(lambda *slices: np.stack(slices), *batch)  # parallel

    key = jax.random.key(options.seed)
    params, opt_state = jax.pmap(init, devices=devices)(jnp.broadcast_to(key, len(own)))  # parallel
    keys = faults.keys(jax.random.split(key, ranks))  # parallel
    with watch.compiling("the training step"):
        jitted = jax.pmap(update, "data", devices=devices, out_axes=(0, 0, None), donate_argnums=(0, 1))  # parallel
        compiled = jitted.lower(params, opt_state, fetch(0)).compile(jax_compiler_options(options))
    watch.started(parameters=lambda: params, optimizer=lambda: opt_state, compiled=compiled, key=keys)  # parallel

    # What was compiled ahead takes the rows of all processes; pmap itself, those of this one.
    program = faults.program(compiled if len(own) == ranks else jitted, jitted)  # parallel
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
