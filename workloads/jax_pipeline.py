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

from devices import jax_compiler_options, jax_devices  # parallel
from injecting import JaxFaults
from models.flax_transformer import Block, Transformer, compute_dtype, embed, norm  # parallel
from options import Options, by_hand, check, settled  # parallel
from tokens import micro_batches
from watching import Watch


def train(options: Options, watch: Watch) -> list[float]:
    """The loss of each step, over the global batch."""
    ranks = options.devices  # parallel
    options = settled(options, ranks, schedule="gpipe")  # parallel
    check(options, ranks, "jax-pp")  # parallel
    mesh = jax.make_mesh((ranks,), ("stage",), (AxisType.Auto,), devices=jax_devices(options))  # parallel
    each, everywhere = PartitionSpec("stage"), PartitionSpec()  # parallel
    onward = [(stage, stage + 1) for stage in range(ranks - 1)]  # parallel

    model = Transformer(options)
    adamw = optax.adamw(options.lr, b1=0.9, b2=0.95, weight_decay=0.1)
    faults = JaxFaults(options)

    def init(key: jax.Array) -> tuple[Any, Any]:
        params = model.init(key, jnp.zeros((1, options.seq + 1), jnp.int32))
        blocks = [params["params"].pop(f"blocks_{number}") for number in range(options.layers)]  # parallel
        params = {"ends": params["params"], "blocks": jax.tree.map(lambda *each: jnp.stack(each), *blocks)}  # parallel
        return params, adamw.init(params)

    def update(params: Any, opt_state: Any, batch: jax.Array) -> tuple[Any, Any, jax.Array]:
        step_key = jax.random.fold_in(key, optax.tree.get(opt_state, "count"))
        loss, gradients = accumulate_gradients(params, batch, step_key)
        loss, gradients["ends"] = jax.lax.psum((loss, gradients["ends"]), "stage")  # parallel
        with jax.named_scope("optimizer"):
            updates, opt_state = adamw.update(gradients, opt_state, params)
            return optax.apply_updates(params, updates), opt_state, loss

    def accumulate_gradients(params: Any, batch: jax.Array, key: jax.Array) -> Any:
        return jax.value_and_grad(loss_of)(params, batch, key)  # parallel

    def loss_of(params: Any, batch: jax.Array, key: jax.Array) -> jax.Array:  # parallel
        # The loss is the last stage's; the others add nothing to it.
        stage = jax.lax.axis_index("stage")  # parallel

        def tick(passed: tuple[jax.Array, jax.Array], number: jax.Array) -> tuple[Any, None]:  # parallel
            received, total = passed  # parallel
            own = number - stage  # parallel
            tokens = batch[jnp.clip(own, 0, options.accumulate - 1)]  # parallel

            def work(x: jax.Array) -> tuple[jax.Array, jax.Array]:  # parallel
                x = jax.lax.cond(stage == 0, lambda: first(params["ends"], tokens), lambda: x)  # parallel
                x = through(params["blocks"], x, jax.random.fold_in(key, own * options.layers))  # parallel
                loss = jax.lax.cond(  # parallel
                    stage == ranks - 1, lambda: last(params["ends"], x, tokens), lambda: jnp.zeros(())  # parallel
                )  # parallel
                return x, loss  # parallel

            has_work = (own >= 0) & (own < options.accumulate)  # parallel
            x, loss = jax.lax.cond(has_work, work, lambda x: (x, jnp.zeros(())), received)  # parallel
            return (jax.lax.ppermute(x, "stage", onward), total + loss / options.accumulate), None  # parallel

        samples = options.batch // options.accumulate  # parallel
        nothing = jnp.zeros((samples, batch.shape[-1] - 1, options.width), compute_dtype(options))  # parallel
        ticks = jnp.arange(options.accumulate + ranks - 1)  # parallel
        return jax.lax.scan(tick, (nothing, jnp.zeros(())), ticks)[0][1]  # parallel

    def first(ends: Any, tokens: jax.Array) -> jax.Array:  # parallel
        places = jnp.arange(tokens.shape[1] - 1)  # parallel
        x = embedding.apply({"params": ends["embedding"]}, tokens[:, :-1])  # parallel
        return x + positions.apply({"params": ends["positions"]}, places)  # parallel

    def through(blocks: Any, x: jax.Array, key: jax.Array) -> jax.Array:  # parallel
        def one(x: jax.Array, held: tuple[Any, jax.Array]) -> tuple[jax.Array, None]:  # parallel
            block, key = held  # parallel
            return Block(options).apply({"params": block}, x, rngs={"dropout": key}), None  # parallel

        one = jax.checkpoint(one) if options.checkpoint_activations else one  # parallel
        keys = jax.random.split(jax.random.fold_in(key, jax.lax.axis_index("stage")), options.layers // ranks)  # parallel
        return jax.lax.scan(one, x, (blocks, keys))[0]  # parallel

    def last(ends: Any, x: jax.Array, tokens: jax.Array) -> jax.Array:  # parallel
        x = norm(options, "norm").apply({"params": ends["norm"]}, x)  # parallel
        logits = embedding.apply({"params": ends["embedding"]}, x, method="attend")  # parallel
        losses = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), tokens[:, 1:])  # parallel
        return losses.mean()  # parallel

    def fetch(step: int) -> jax.Array:
        batch = micro_batches(options, step)
        return jax.device_put(batch, NamedSharding(mesh, everywhere))  # parallel

    def spec_of(path: Any, array: jax.Array) -> PartitionSpec:  # parallel
        is_block = any(getattr(part, "key", "") == "blocks" for part in path)  # parallel
        return each if is_block and array.ndim else everywhere  # parallel

    embedding, positions = (embed(options, rows, "table") for rows in (options.vocab, options.seq))  # parallel
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
