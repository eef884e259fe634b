# /// script
# requires-python = ">=3.11"
# dependencies = ["jax>=0.6", "flax>=0.10", "optax>=0.2.4", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "pjit"
# title = "JAX pjit: parameters and optimizer state sharded over a mesh, the compiler places the collectives"
# framework = "jax"
# launch = "process"
#
# [[tool.meshscope.strategy]]
# name = "pjit-dp"
# title = "JAX pjit, plain data parallel: a full replica per device, the compiler averages the gradients"
# framework = "jax"
# launch = "process"
# arguments = ["--spec", "dp"]
#
# [[tool.meshscope.strategy]]
# name = "pjit-tp"
# title = "JAX pjit, tensor parallel: every matrix split over all devices, which work on the same samples"
# framework = "jax"
# launch = "process"
# min_ranks = 2
# arguments = ["--spec", "tp"]
#
# [[tool.meshscope.strategy]]
# name = "pjit-2d"
# title = "JAX pjit over a mesh of two axes: parameters sharded over one, matrices split over the other"
# framework = "jax"
# launch = "process"
# min_ranks = 4
# arguments = ["--spec", "fsdp-tp", "--tensor", "2"]
# ///
"""Trains a model with JAX pjit, today's ``jax.jit`` with shardings, over a mesh of two axes.

    python workloads/jax_pjit.py --devices 4 --model tiny --steps 5
    python workloads/jax_pjit.py --devices 4 --model tiny --steps 5 --spec dp
    python workloads/jax_pjit.py --devices 4 --model tiny --steps 5 --spec fsdp-tp --tensor 2

The step is written for the global batch, as if on one device; a PartitionSpec per array says how it lies on the
mesh. With ``--spec fsdp`` a device holds a part of each parameter and of its optimizer state, with ``dp`` all of it.
With ``tp`` devices along the axis ``tensor`` have the same samples and split each block's matrices as Megatron-LM
does: the first of two by columns, the second by rows, so that one all-reduce after it is enough.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec  # parallel

from batches import micro_batches
from devices import jax_compiler_options, jax_devices, laid_out  # parallel
from injecting import JaxFaults
from models.flax_models import build
from options import Options, by_hand, check, settled  # parallel
from watching import Watch

SPLIT_DIMS = {"qkv": 1, "out": 0, "up": 1, "down": 0, "embedding": 0}  # parallel


def used(mesh: Mesh, path: Any, array: jax.Array) -> NamedSharding:  # parallel
    """How a layer's devices use an array: matrices by columns or rows over the axis of tensor parallelism."""
    axes: list[str | None] = [None] * array.ndim  # parallel
    owner = getattr(path[-2], "key", "") if len(path) > 1 else ""  # parallel
    if mesh.shape["tensor"] > 1 and owner in SPLIT_DIMS:  # parallel
        axes[SPLIT_DIMS[owner]] = "tensor"  # parallel
    return NamedSharding(mesh, PartitionSpec(*axes))  # parallel


def held(mesh: Mesh, path: Any, array: jax.Array) -> NamedSharding:  # parallel
    """How it lies between uses: split over the axis of the batch too, by the first dim that this divides."""
    axes = [*used(mesh, path, array).spec, *[None] * array.ndim][: array.ndim]  # parallel
    size = mesh.shape["data"]  # parallel
    free = [dim for dim, axis in enumerate(axes) if axis is None and array.shape[dim] % size == 0]  # parallel
    if free:  # parallel
        axes[free[0]] = "data"  # parallel
    return NamedSharding(mesh, PartitionSpec(*axes))  # parallel


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step, over the global batch."""
    ranks = options.devices  # parallel
    options = settled(options, ranks)  # parallel
    check(options, ranks, {"fsdp": "pjit", "dp": "pjit-dp", "tp": "pjit-tp"}.get(options.spec, "pjit-2d"))  # parallel
    sizes = (ranks // options.tensor, options.tensor)  # parallel
    mesh = jax.make_mesh(sizes, ("data", "tensor"), (AxisType.Auto,) * 2, devices=jax_devices(options))  # parallel
    replicated = NamedSharding(mesh, PartitionSpec())  # parallel

    model = build(options)
    adamw = optax.adamw(options.lr, b1=0.9, b2=0.95, weight_decay=0.1)
    faults = JaxFaults(options)

    def init(key: jax.Array) -> tuple[Any, Any]:
        params = model.init(key)
        return params, adamw.init(params)

    def update(params: Any, opt_state: Any, batch: Any) -> tuple[Any, Any, jax.Array]:
        step_key = jax.random.fold_in(key, optax.tree.get(opt_state, "count"))
        loss, gradients = accumulate_gradients(params, batch, step_key)
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
        # Parameters are gathered where they are used; left to itself, the compiler splits the activations as well.
        whole = jax.tree_util.tree_map_with_path(partial(used, mesh), params)  # parallel
        gathered = jax.lax.with_sharding_constraint(params, whole)  # parallel
        return model.loss(gathered, micro_batch, key)  # parallel

    def fetch(step: int) -> tuple[jax.Array, ...]:
        batch = micro_batches(options, step)
        return laid_out(batch, NamedSharding(mesh, PartitionSpec(None, "data")))  # parallel

    key = jax.random.key(options.seed)
    lies = partial(held if options.spec.startswith("fsdp") else used, mesh)  # parallel
    shardings = jax.tree_util.tree_map_with_path(lies, jax.eval_shape(init, key))  # parallel
    params, opt_state = jax.jit(init, out_shardings=shardings)(key)  # parallel
    with watch.compiling("the training step"):
        jitted = jax.jit(update, donate_argnums=(0, 1), out_shardings=(*shardings, replicated))  # parallel
        compiled = jitted.lower(params, opt_state, fetch(0)).compile(jax_compiler_options(options))
    watch.started(parameters=lambda: params, optimizer=lambda: opt_state, compiled=compiled)

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
