# /// script
# requires-python = ">=3.11"
# dependencies = ["jax>=0.6", "flax>=0.10", "optax>=0.2.4", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "jax-ep"
# title = "JAX expert parallel: each device holds some experts, tokens go to theirs and back with lax.all_to_all"
# framework = "jax"
# launch = "process"
# ///
"""Trains a mixture of experts with JAX shard_map, experts spread over the devices and everything else replicated.

    python workloads/jax_ep.py --devices 4 --model moe --steps 5

In every block a device sends each token to the devices that hold its experts, and gets back what they made of it: an
all-to-all there and one back, and as many in the backward pass. The gradients of what is replicated are averaged; those
of an expert are whole on its device.
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
from models.flax_moe import Experts  # parallel
from options import Options, by_hand, check
from watching import Watch


class SpreadExperts(Experts):  # parallel
    """A device's share of the experts, which has the rows of all devices that were sent to them."""

    def __call__(self, rows: jax.Array) -> jax.Array:  # parallel
        arrived = jax.lax.all_to_all(rows, "data", split_axis=0, concat_axis=1, tiled=True)  # parallel
        return jax.lax.all_to_all(self.compute(arrived), "data", split_axis=1, concat_axis=0, tiled=True)  # parallel


def is_spread(path: Any) -> bool:  # parallel
    """Whether a parameter, by its place in the tree, is of experts."""
    return any(getattr(key, "key", "") == "experts" for key in path)  # parallel


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step, over the global batch."""
    ranks = options.devices  # parallel
    check(options, ranks, "jax-ep")  # parallel
    mesh = jax.make_mesh((ranks,), ("data",), (AxisType.Auto,), devices=jax_devices(options))  # parallel
    each, everywhere = PartitionSpec("data"), PartitionSpec()  # parallel
    slices = PartitionSpec(None, "data")  # parallel

    model = build(options)
    spread = build(options, make_experts=SpreadExperts)  # parallel
    adamw = optax.adamw(options.lr, b1=0.9, b2=0.95, weight_decay=0.1)
    faults = JaxFaults(options)

    def init(key: jax.Array) -> tuple[Any, Any]:
        params = model.init(key)
        return params, adamw.init(params)

    def update(params: Any, opt_state: Any, batch: Any, key: jax.Array) -> tuple[Any, Any, jax.Array]:  # parallel
        step_key = jax.random.fold_in(key[0], optax.tree.get(opt_state, "count"))  # parallel
        own = accumulate_gradients(params, batch, step_key)  # parallel
        loss, gradients = faults.averaged(own, averaged, "data")  # parallel
        with jax.named_scope("optimizer"):
            updates, opt_state = adamw.update(gradients, opt_state, params)
            return optax.apply_updates(params, updates), opt_state, loss

    def averaged(found: Any, axis: str) -> Any:  # parallel
        # An expert's gradients are sums over all devices, each of its own mean of the loss.
        def mean(path: Any, leaf: jax.Array) -> jax.Array:  # parallel
            return leaf / ranks if is_spread(path) else jax.lax.pmean(leaf, axis)  # parallel

        return jax.tree_util.tree_map_with_path(mean, found)  # parallel

    def accumulate_gradients(params: Any, batch: Any, key: jax.Array) -> Any:
        def add(total: Any, part_of_batch: tuple[Any, jax.Array]) -> tuple[Any, None]:
            micro_batch, key = part_of_batch
            part = jax.value_and_grad(spread.loss)(params, micro_batch, key)  # parallel
            return jax.tree.map(lambda t, p: t + p / options.accumulate, total, part), None

        nothing = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
        return jax.lax.scan(add, nothing, (batch, jax.random.split(key, options.accumulate)))[0]

    def fetch(step: int) -> tuple[jax.Array, ...]:
        batch = micro_batches(options, step)
        return laid_out(batch, NamedSharding(mesh, slices))  # parallel

    def spec(path: Any, _: Any) -> PartitionSpec:  # parallel
        return each if is_spread(path) else everywhere  # parallel

    key = jax.random.key(options.seed)
    held = jax.tree_util.tree_map_with_path(spec, jax.eval_shape(init, key))  # parallel
    shardings = jax.tree.map(partial(NamedSharding, mesh), held)  # parallel
    params, opt_state = jax.jit(init, out_shardings=shardings)(key)  # parallel
    keys = laid_out(faults.keys(jax.random.split(key, ranks)), NamedSharding(mesh, each))  # parallel
    specs = {"in_specs": (*held, slices, each), "out_specs": (*held, everywhere)}  # parallel
    with watch.compiling("the training step"):
        # Without the check, gradients stay each device's own until they are averaged above.
        by_device = jax.shard_map(update, mesh=mesh, **specs, check_vma=False)  # parallel
        jitted = jax.jit(lambda *given: by_device(*given, keys), donate_argnums=(0, 1))  # parallel
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
