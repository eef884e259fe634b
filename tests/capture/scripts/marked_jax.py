"""Plain JAX whose loop says its steps itself."""

import jax
import jax.numpy as jnp

import meshscope


@jax.jit
def update(weights, x):
    return weights - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(weights)


weights, x = jnp.ones((64, 64)), jnp.ones((32, 64))
with meshscope.record():
    for number in range(20):
        weights = jax.block_until_ready(update(weights, x[: 31 if number == 12 else 32]))
        meshscope.step(samples=32, tokens=64)
print("done")
