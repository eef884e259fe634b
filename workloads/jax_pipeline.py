# /// script
# requires-python = ">=3.11"
# dependencies = ["jax>=0.6", "flax>=0.10", "optax>=0.2.4", "numpy"]
#
# [[tool.meshscope.strategy]]
# name = "jax-pp"
# title = "JAX pipeline, GPipe: a stage of blocks per device, activations passed on by ppermute"
# framework = "jax"
# launch = "process"
# min_ranks = 2
# arguments = ["--schedule", "gpipe", "--accumulate", "8"]
# ///
"""Trains the transformer as a JAX pipeline: a device holds a stretch of its blocks, within shard_map.

    python workloads/jax_pipeline.py --devices 4 --model tiny --steps 5 --accumulate 8

All devices run one program of as many ticks as there are micro-batches and further stages. In a tick a device takes
its next micro-batch through its blocks, if there is one by then, and passes it on by ``lax.ppermute``. The gradient of
that loop runs the same ticks backward: GPipe. Embedding, positions and last norm are on every device, since they run
one program; only the first and the last use them, and their gradients are added up over all.
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
from models.flax_transformer import Block, compute_dtype, embed, norm  # parallel
from options import Options, by_hand, check, settled  # parallel
from watching import Watch


def through_all(options: Options, params: Any, batch: jax.Array, key: jax.Array) -> jax.Array:  # parallel
    """The mean loss of all micro-batches on the last stage, 0 on every other: the sum over stages is the loss."""
    stage = jax.lax.axis_index("stage")  # parallel
    onward = [(number, number + 1) for number in range(options.stages - 1)]  # parallel

    def tick(passed: tuple[jax.Array, jax.Array], number: jax.Array) -> tuple[Any, None]:  # parallel
        received, total = passed  # parallel
        own = number - stage  # parallel
        has_work = (own >= 0) & (own < options.accumulate)  # parallel
        tokens = batch[jnp.clip(own, 0, options.accumulate - 1)]  # parallel
        work = partial(through_one, options, params, tokens, jax.random.fold_in(key, own))  # parallel
        x, loss = jax.lax.cond(has_work, work, lambda x: (x, jnp.zeros(())), received)  # parallel
        return (jax.lax.ppermute(x, "stage", onward), total + loss / options.accumulate), None  # parallel

    samples, seq = options.batch // options.accumulate, batch.shape[-1] - 1  # parallel
    nothing = jnp.zeros((samples, seq, options.width), compute_dtype(options)), jnp.zeros(())  # parallel
    # A tick keeps what it received and is computed again for its gradients, as in GPipe: kept otherwise, what leaves a
    # branch holds a copy of the weights for each tick.
    again = jax.checkpoint(tick, prevent_cse=False)  # parallel
    return jax.lax.scan(again, nothing, jnp.arange(options.accumulate + options.stages - 1))[0][1]  # parallel


def through_one(options: Options, params: Any, tokens: jax.Array, key: jax.Array, x: jax.Array) -> Any:  # parallel
    """A micro-batch through a device's blocks: what leaves them, and its loss, 0 where more blocks follow."""
    stage, ends = jax.lax.axis_index("stage"), params["ends"]  # parallel
    embedding, positions = (embed(options, rows, "table") for rows in (options.vocab, options.seq))  # parallel

    def first() -> jax.Array:  # parallel
        places = positions.apply({"params": ends["positions"]}, jnp.arange(tokens.shape[1] - 1))  # parallel
        return embedding.apply({"params": ends["embedding"]}, tokens[:, :-1]) + places  # parallel

    def block(x: jax.Array, own: tuple[Any, jax.Array]) -> tuple[jax.Array, None]:  # parallel
        return Block(options).apply({"params": own[0]}, x, rngs={"dropout": own[1]}), None  # parallel

    def last() -> jax.Array:  # parallel
        normed = norm(options, "norm").apply({"params": ends["norm"]}, x)  # parallel
        logits = embedding.apply({"params": ends["embedding"]}, normed, method="attend").astype(jnp.float32)  # parallel
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()  # parallel

    x = jax.lax.cond(stage == 0, first, lambda: x)  # parallel
    keys = jax.random.split(jax.random.fold_in(key, stage), options.layers // options.stages)  # parallel
    block = jax.checkpoint(block) if options.checkpoint_activations else block  # parallel
    x = jax.lax.scan(block, x, (params["blocks"], keys))[0]  # parallel
    return x, jax.lax.cond(stage == options.stages - 1, last, lambda: jnp.zeros(()))  # parallel


def spec_of(path: Any, array: jax.Array) -> PartitionSpec:  # parallel
    """Blocks lie on their stages, everything else on every device."""
    is_block = any(getattr(part, "key", "") == "blocks" for part in path)  # parallel
    return PartitionSpec("stage") if is_block and array.ndim else PartitionSpec()  # parallel


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step, over the global batch."""
    ranks = options.devices  # parallel
    options = settled(options, ranks, schedule="gpipe")  # parallel
    check(options, ranks, "jax-pp")  # parallel
    mesh = jax.make_mesh((ranks,), ("stage",), (AxisType.Auto,), devices=jax_devices(options))  # parallel
    everywhere = PartitionSpec()  # parallel

    model = build(options)
    adamw = optax.adamw(options.lr, b1=0.9, b2=0.95, weight_decay=0.1)
    faults = JaxFaults(options)

    def init(key: jax.Array) -> tuple[Any, Any]:
        params = model.init(key)
        blocks = [params["params"].pop(f"blocks_{number}") for number in range(options.layers)]  # parallel
        params = {"ends": params["params"], "blocks": jax.tree.map(lambda *each: jnp.stack(each), *blocks)}  # parallel
        return params, adamw.init(params)

    def update(params: Any, opt_state: Any, batch: Any) -> tuple[Any, Any, jax.Array]:
        step_key = jax.random.fold_in(key, optax.tree.get(opt_state, "count"))
        loss, gradients = accumulate_gradients(params, batch, step_key)
        loss, gradients["ends"] = jax.lax.psum((loss, gradients["ends"]), "stage")  # parallel
        with jax.named_scope("optimizer"):
            updates, opt_state = adamw.update(gradients, opt_state, params)
            return optax.apply_updates(params, updates), opt_state, loss

    def accumulate_gradients(params: Any, batch: Any, key: jax.Array) -> Any:
        return jax.value_and_grad(partial(through_all, options))(params, *batch, key)  # parallel

    def fetch(step: int) -> tuple[jax.Array, ...]:
        batch = micro_batches(options, step)
        return laid_out(batch, NamedSharding(mesh, everywhere))  # parallel

    key = jax.random.key(options.seed)
    specs = jax.tree_util.tree_map_with_path(spec_of, jax.eval_shape(init, key))  # parallel
    shardings = jax.tree.map(partial(NamedSharding, mesh), specs)  # parallel
    params, opt_state = jax.jit(init, out_shardings=shardings)(key)  # parallel
    with watch.compiling("the training step"):
        by_device = jax.shard_map(  # parallel
            update,  # parallel
            mesh=mesh,  # parallel
            in_specs=(*specs, everywhere),  # parallel
            out_specs=(*specs, everywhere),  # parallel
            check_vma=False,  # parallel
        )  # parallel
        jitted = jax.jit(by_device, donate_argnums=(0, 1))  # parallel
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
