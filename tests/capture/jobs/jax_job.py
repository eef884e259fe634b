"""A JAX job over all local devices as the documentation has it, which knows nothing of meshscope.

    python jax_job.py --port 9999

It starts JAX's own profiler server, marks its steps with StepTraceAnnotation, and prints the time of every step.
Shape: https://docs.jax.dev/en/latest/profiling.html
"""

import argparse
import os
import time

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=90, help="the longest that it trains")
    parser.add_argument("--until", default="", help="a file: once it is there, the job ends")
    asked = parser.parse_args()
    jax.profiler.start_server(asked.port)
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    split, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("data",), ()))
    key = jax.random.key(0)
    params = jax.device_put([jax.random.normal(key, (512, 512)) * 0.04 for _ in range(4)], everywhere)
    batch = jax.device_put(jax.random.normal(key, (512, 512)), split)

    def loss_of(params: list[jax.Array], batch: jax.Array) -> jax.Array:
        found = batch
        for weight in params:
            found = jnp.tanh(found @ weight)
        return jnp.mean((found - batch) ** 2)

    @jax.jit
    def train_step(params: list[jax.Array], batch: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(params, batch)
        return [weight - 0.01 * gradient for weight, gradient in zip(params, gradients, strict=True)], loss

    ends = time.monotonic() + asked.seconds
    step = 0
    while time.monotonic() < ends and not os.path.exists(asked.until):
        started = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            params, loss = train_step(params, batch)
            jax.block_until_ready((params, loss))
        took_ms = (time.perf_counter() - started) * 1000
        print(f"step {step} loss {loss:.4f} at {time.time():.6f} took {took_ms:.3f} ms", flush=True)
        step += 1
    print(f"has trained {step} steps", flush=True)


if __name__ == "__main__":
    main()
