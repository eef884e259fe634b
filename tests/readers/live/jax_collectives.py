"""Each kind of collective over four virtual CPU devices, in two profiled steps, on arrays of known sizes."""

from __future__ import annotations

import os
import sys
from functools import partial

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


def main(out: str) -> None:
    line = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
    grid = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    on_line = partial(jax.shard_map, mesh=line, check_vma=False)
    on_grid = partial(jax.shard_map, mesh=grid, check_vma=False)

    @partial(jax.jit, in_shardings=NamedSharding(line, P("d")))
    def trained(x: jax.Array) -> jax.Array:
        def loss(weights: jax.Array) -> jax.Array:
            with jax.named_scope("layer"):
                return jnp.mean(jnp.tanh(x @ weights))

        gradient = jax.grad(loss)(jnp.ones((64, 64)))
        with jax.named_scope("optimizer"):
            return jnp.ones((64, 64)) - 0.1 * gradient

    calls = [
        (jax.pmap(lambda x: lax.psum(x, "i"), "i"), jnp.ones((4, 1000))),
        (jax.jit(on_line(lambda x: lax.ppermute(x, "d", RING), in_specs=P("d"), out_specs=P("d"))),
         jnp.ones((4, 512), jnp.int8)),
        (jax.jit(on_line(lambda x: lax.all_to_all(x, "d", 0, 0, tiled=True), in_specs=P(None, "d"),
                         out_specs=P(None, "d"))), jnp.ones((64, 128))),
        (jax.jit(on_line(lambda x: lax.all_gather(x, "d", tiled=True), in_specs=P("d"), out_specs=P())),
         jnp.ones(4096, jnp.int16)),
        (jax.jit(on_line(lambda x: lax.psum_scatter(x, "d", tiled=True), in_specs=P(), out_specs=P("d"))),
         jnp.ones(8192)),
        (jax.jit(on_grid(lambda x: lax.psum(x, "b"), in_specs=P("a", "b"), out_specs=P("a"))), jnp.ones((64, 64))),
        (trained, jnp.ones((256, 64))),
    ]  # fmt: skip
    for call, argument in calls:
        jax.block_until_ready(call(argument))
    with jax.profiler.trace(out):
        for number in range(2):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                for call, argument in calls:
                    jax.block_until_ready(call(argument))


if __name__ == "__main__":
    main(sys.argv[1])
