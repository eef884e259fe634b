# /// script
# requires-python = ">=3.11"
# dependencies = ["jax>=0.6", "flax>=0.10", "optax>=0.2.4", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "shard-map-fsdp"
# title = "JAX shard_map, fully sharded: all-gathers and reduce-scatters by hand, for one device of a mesh"
# framework = "jax"
# launch = "process"
# ///
"""Trains a model with JAX shard_map, every parameter sharded: its all-gathers stand in the step by name.

    python workloads/jax_shard_map_fsdp.py --devices 4 --model tiny --steps 5

A device holds a part of each parameter and of its optimizer state. It gathers the whole before a forward pass; the
gradient of that gather is a reduce-scatter, which leaves each device the sum of its own part's gradients.
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


def spec_of(ranks: int, array: jax.Array) -> PartitionSpec:  # parallel
    """Split over the first dim that the devices divide; an array without one is replicated."""
    dims = [dim for dim, size in enumerate(array.shape) if size % ranks == 0]  # parallel
    return PartitionSpec(*[None] * dims[0], "data") if dims else PartitionSpec()  # parallel


def gathered(shard: jax.Array, spec: PartitionSpec) -> jax.Array:  # parallel
    """The whole of a parameter."""
    is_whole = "data" not in spec  # parallel
    return shard if is_whole else jax.lax.all_gather(shard, "data", axis=spec.index("data"), tiled=True)  # parallel


def averaged(ranks: int, gradient: jax.Array, spec: PartitionSpec) -> jax.Array:  # parallel
    """A shard's gradient is the sum over devices already: that is what the gradient of a gather gives."""
    return gradient / ranks if "data" in spec else jax.lax.pmean(gradient, "data")  # parallel


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step, over the global batch."""
    ranks = options.devices  # parallel
    check(options, ranks, "shard-map-fsdp")  # parallel
    mesh = jax.make_mesh((ranks,), ("data",), (AxisType.Auto,), devices=jax_devices(options))  # parallel
    each, slices = PartitionSpec("data"), PartitionSpec(None, "data")  # parallel

    model = build(options)
    adamw = optax.adamw(options.lr, b1=0.9, b2=0.95, weight_decay=0.1)
    faults = JaxFaults(options)

    def init(key: jax.Array) -> tuple[Any, Any]:
        params = model.init(key)
        return params, adamw.init(params)

    def update(params: Any, opt_state: Any, batch: Any, key: jax.Array) -> tuple[Any, Any, jax.Array]:  # parallel
        step_key = jax.random.fold_in(key[0], optax.tree.get(opt_state, "count"))  # parallel
        loss, gradients = accumulate_gradients(params, batch, step_key)
        loss = jax.lax.pmean(loss, "data")  # parallel
        gradients = jax.tree.map(partial(averaged, ranks), gradients, specs[0])  # parallel
        with jax.named_scope("optimizer"):
            updates, opt_state = adamw.update(gradients, opt_state, params)
            return optax.apply_updates(params, updates), opt_state, loss

    def accumulate_gradients(params: Any, batch: Any, key: jax.Array) -> Any:
        def add(total: Any, part_of_batch: tuple[Any, jax.Array]) -> tuple[Any, None]:
            micro_batch, key = part_of_batch
            part = jax.value_and_grad(loss_of)(params, micro_batch, key)  # parallel
            return jax.tree.map(lambda t, p: t + p / options.accumulate, total, part), None

        nothing = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
        return jax.lax.scan(add, nothing, (batch, jax.random.split(key, options.accumulate)))[0]

    def loss_of(params: Any, micro_batch: Any, key: jax.Array) -> jax.Array:  # parallel
        return model.loss(jax.tree.map(gathered, params, specs[0]), micro_batch, key)  # parallel

    def fetch(step: int) -> tuple[jax.Array, ...]:
        batch = micro_batches(options, step)
        return laid_out(batch, NamedSharding(mesh, slices))  # parallel

    key = jax.random.key(options.seed)
    specs = jax.tree.map(partial(spec_of, ranks), jax.eval_shape(init, key))  # parallel
    shardings = jax.tree.map(partial(NamedSharding, mesh), specs)  # parallel
    params, opt_state = jax.jit(init, out_shardings=shardings)(key)  # parallel
    keys = laid_out(faults.keys(jax.random.split(key, ranks)), NamedSharding(mesh, each))  # parallel
    with watch.compiling("the training step"):
        # Without the check, gradients stay each device's own until they are averaged above.
        by_device = jax.shard_map(  # parallel
            update,  # parallel
            mesh=mesh,  # parallel
            in_specs=(*specs, slices, each),  # parallel
            out_specs=(*specs, PartitionSpec()),  # parallel
            check_vma=False,  # parallel
        )  # parallel
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
