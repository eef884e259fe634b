"""What the watch and the profiler cost a JAX process: CPU time per step against no watch, within one run.

    JAX_NUM_CPU_DEVICES=4 python tests/capture/cost/measure_jax.py

As ``measure_torch.py``, with the bundled flax transformer in plain data parallel over the devices.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "workloads"))

from meshscope.capture.workers.jax_watch import JaxWatch  # noqa: E402
from meshscope.capture.workers.post import Post  # noqa: E402
from meshscope.capture.workers.rank_journal import RankJournal  # noqa: E402
from meshscope.experiment import Experiment  # noqa: E402
from meshscope.recording import control  # noqa: E402
from meshscope.recording.control import Ask  # noqa: E402
from models.flax_transformer import Transformer  # noqa: E402
from options import Options  # noqa: E402
from tokens import micro_batches  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "6"))
BLOCK = int(os.environ.get("BLOCK", "20"))


def main(recording: Path) -> None:
    ranks = len(jax.devices())
    options = Options(devices=ranks)
    mesh = jax.make_mesh((ranks,), ("data",), axis_types=(AxisType.Auto,))
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec(None, "data"))
    model, adamw = Transformer(options), optax.adamw(1e-3)
    params = jax.device_put(model.init(jax.random.key(0), jnp.zeros((1, options.seq + 1), jnp.int32)), whole)
    state = jax.device_put(adamw.init(params), whole)

    def update(params, state, batch):
        loss, gradients = jax.value_and_grad(model.apply)(params, batch[0])
        updates, state = adamw.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    compiled = jax.jit(update).lower(params, state, jax.device_put(micro_batches(options, 0), split)).compile()
    watch = _watch(recording, ranks, options)
    watch.started(parameters=lambda: params, optimizer=lambda: state, compiled=compiled)
    costs: dict[str, list[float]] = {"none": [], "idle": [], "window": []}

    def one(number: int, *, is_watched: bool) -> None:
        nonlocal params, state
        with watch.step(number) if is_watched else nullcontext():
            batch = jax.device_put(micro_batches(options, number), split)
            params, state, loss = compiled(params, state, batch)
            watch.loss(loss)

    for number in range(3):
        one(number, is_watched=True)
    step = 3
    for _ in range(ROUNDS):
        for kind, taken in costs.items():
            if kind == "window":
                control.ask(recording, Ask(what="window", first_step=step + 4, end_step=step + 6, reason="cycle"))
            start = time.process_time()
            for number in range(step, step + BLOCK):
                one(number, is_watched=kind != "none")
            taken.append((time.process_time() - start) / BLOCK)
            step += BLOCK
    base, idle, window = (statistics.median(costs[kind]) for kind in costs)
    traces = len(list((recording / "plugins").rglob("*.xplane.pb")))
    print(
        f"{base * 1e3:.1f} ms CPU per step; idle watch × {idle / base:.3f}; one window in {BLOCK} steps "
        f"× {window / base:.3f}, {(window - base) * BLOCK * 1e3:.0f} ms per window ({traces} traces)"
    )


def _watch(recording: Path, ranks: int, options: Options) -> JaxWatch:
    now = time.time_ns()
    experiment = Experiment(
        t0_unix_ns=now, strategy="pjit-dp", title="", framework="jax", ranks=ranks, device_kind="cpu", model="tiny",
        planned_steps=10_000, global_batch=options.batch, sequence_length=options.seq,
    )  # fmt: skip
    return JaxWatch(Post(recording, experiment, RankJournal(recording, 0, t0_unix_ns=now), options, 0, 0, 10))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
