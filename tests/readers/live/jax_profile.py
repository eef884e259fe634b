"""Three profiled steps of JAX over four virtual CPU devices, with every file that the profiler writes."""

from __future__ import annotations

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec


def main(out: str) -> None:
    mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
    batch = jax.device_put(jnp.ones((256, 256)), NamedSharding(mesh, PartitionSpec("d")))
    weights = jax.device_put(jnp.ones((256, 256)), NamedSharding(mesh, PartitionSpec()))

    @jax.jit
    def step(weights: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(batch @ w @ w)))(weights)
        return weights - 0.1 * gradient, loss

    step(weights, batch)[1].block_until_ready()
    with jax.profiler.trace(out, create_perfetto_trace=True):
        for number in range(3):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                weights, loss = step(weights, batch)
                loss.block_until_ready()


if __name__ == "__main__":
    main(sys.argv[1])
