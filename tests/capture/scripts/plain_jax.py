"""Fits a line with plain JAX, each step inside the annotation of JAX's own profiling guide."""

import functools
import sys

import jax
import jax.numpy as jnp


def predict(params, x):
    for weight, bias in params:
        x = jnp.tanh(x @ weight + bias)
    return x


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@functools.partial(jax.jit, donate_argnums=0)
def update(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


def main(steps=30):
    key = jax.random.key(0)
    sizes = [(32, 128), (128, 128), (128, 8)]
    params = [(jax.random.normal(key, size) * 0.1, jnp.zeros(size[1])) for size in sizes]
    x, y = jax.random.normal(key, (64, 32)), jnp.ones((64, 8))
    for step in range(100, 100 + steps):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            params, loss = update(params, x, y)
    print(f"loss {loss:.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
