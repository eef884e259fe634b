# /// script
# dependencies = ["jax"]
#
# [[tool.meshscope.strategy]]
# name = "jax-toy"
# title = "A matrix, its rows split over the devices"
# framework = "jax"
# launch = "process"
# ///
"""A matrix product under jit with sharded rows; the batch can change its shape at step 3, to be compiled again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from options import Options, fail_as_asked


def train(options: Options, watch) -> list[float]:
    jax.config.update("jax_num_cpu_devices", options.devices)
    mesh = jax.make_mesh((options.devices,), ("rows",), axis_types=(AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("rows"))  # parallel
    weights = jax.device_put(np.eye(options.width, dtype=np.float32), split)
    momentum = jnp.zeros_like(weights)

    def toy_step(weights, momentum, batch):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(weights)
        momentum = 0.9 * momentum + gradient
        return weights - 0.1 * momentum, momentum, loss

    def fetch(step):
        return np.ones((options.batch + (step == 3), options.width), np.float32)

    jitted = jax.jit(toy_step)
    with watch.compiling("the toy step"):
        compiled = jitted.lower(weights, momentum, fetch(0)).compile()
    key = jax.random.split(jax.random.key(0), options.devices)  # one for each device, all different
    watch.started(parameters=lambda: weights, optimizer=lambda: momentum, compiled=compiled, key=key)
    losses = []
    for step in range(options.steps):
        with watch.step(step):
            fail_as_asked(options, 0, step)
            batch = watch.batch(lambda: fetch(step))  # noqa: B023  # called at once
            weights, momentum, loss = jitted(weights, momentum, batch)
            losses.append(watch.loss(loss))
    watch.finished()
    return losses
