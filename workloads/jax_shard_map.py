# /// script
# requires-python = ">=3.11"
# dependencies = ["jax>=0.6", "flax>=0.10", "optax>=0.2.4", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "shard-map"
# title = "JAX shard_map: the step written for one device of a mesh, its collectives by hand"
# framework = "jax"
# launch = "process"
# ///
"""Trains a model with JAX shard_map: the step is written for one device, and names each collective itself.

    python workloads/jax_shard_map.py --devices 4 --model tiny --steps 5

Every device holds the whole model and its slice of the batch; ``lax.pmean`` is where the devices meet. This is what
pmap (and xmap, which is gone) became: the same program, over a mesh and within ``jax.jit``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec  # parallel

from batches import micro_batches
from devices import jax_compiler_options, jax_devices, laid_out  # parallel
from injecting import JaxFaults
from models.flax_models import build
from options import Options, by_hand, check
from watching import Watch


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step, over the global batch."""
    ranks = options.devices  # parallel
    check(options, ranks, "shard-map")  # parallel
    mesh = jax.make_mesh((ranks,), ("data",), (AxisType.Auto,), devices=jax_devices(options))  # parallel
    each, everywhere = PartitionSpec("data"), PartitionSpec()  # parallel
    slices = PartitionSpec(None, "data")  # parallel

    model = build(options)
    adamw = optax.adamw(options.lr, b1=0.9, b2=0.95, weight_decay=0.1)
    faults = JaxFaults(options)

    def init(key: jax.Array) -> tuple[Any, Any]:
        params = model.init(key)
        return params, adamw.init(params)

    def update(params: Any, opt_state: Any, batch: Any, key: jax.Array) -> tuple[Any, Any, jax.Array]:  # parallel
        step_key = jax.random.fold_in(key[0], optax.tree.get(opt_state, "count"))  # parallel
        own = accumulate_gradients(params, batch, step_key)  # parallel
        loss, gradients = faults.averaged(own, jax.lax.pmean, "data")  # parallel
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
        return laid_out(batch, NamedSharding(mesh, slices))  # parallel

    key = jax.random.key(options.seed)
    params, opt_state = jax.jit(init, out_shardings=NamedSharding(mesh, everywhere))(key)  # parallel
    keys = laid_out(faults.keys(jax.random.split(key, ranks)), NamedSharding(mesh, each))  # parallel
    specs = {"in_specs": (everywhere, everywhere, slices, each), "out_specs": everywhere}  # parallel
    with watch.compiling("the training step"):
        # Without the check, gradients stay each device's own until they are averaged above.
        by_device = jax.shard_map(update, mesh=mesh, **specs, check_vma=False)  # parallel
        jitted = jax.jit(lambda *held: by_device(*held, keys), donate_argnums=(0, 1))  # parallel
        compiled = jitted.lower(params, opt_state, fetch(0)).compile(jax_compiler_options(options))
    watch.started(parameters=lambda: params, optimizer=lambda: opt_state, compiled=compiled, key=keys)  # parallel

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
