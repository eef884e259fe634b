"""``python -m meshscope.advisor.workers.bench_jax DEVICES THREADS SECONDS``: one JSON line of what JAX reaches here.

On a CPU there are as many virtual devices as asked for, in one process: their collectives are XLA's own, within it.
Figures are medians over repeats, of programs that are compiled before. Sizes of collectives are those of the whole
array, as nccl-tests counts them.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from meshscope.advisor.workers.bench_plan import ATTENTION, COLLECTIVES, COPY_BYTES, MATMULS, Plan, plan

_DTYPES = {"fp32": jnp.float32, "tf32": jnp.float32, "fp16": jnp.float16, "bf16": jnp.bfloat16}
_PRECISION = {"tf32": "tensorfloat32", "fp32": "float32"}
_FEWEST, _MOST = 3, 200


def timed(work: Callable[[], Any], budget_s: float) -> float:
    """Seconds of one call: the median of as many as fit into the budget, after one that compiles."""
    jax.block_until_ready(work())
    took: list[float] = []
    deadline = time.perf_counter() + budget_s
    while len(took) < _FEWEST or (time.perf_counter() < deadline and len(took) < _MOST):
        begun = time.perf_counter()
        jax.block_until_ready(work())
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def matmuls(asked: Plan) -> list[dict[str, Any]]:
    """Seconds of products of ``m × k`` and ``k × n``, by compute type."""
    found = []
    for compute in asked.computes:
        product = jax.jit(lambda a, b, compute=compute: jnp.matmul(a, b, precision=_PRECISION.get(compute)))
        for m, n, k in MATMULS[asked.size]:
            left, right = (jnp.ones(shape, _DTYPES[compute]) for shape in ((m, k), (k, n)))
            seconds = timed(lambda left=left, right=right, of=product: of(left, right), asked.each_s)  # type: ignore[misc]
            found.append({"compute": compute, "m": m, "n": n, "k": k, "seconds": seconds})
    return found


def attentions(asked: Plan) -> list[dict[str, Any]]:
    """Seconds of causal attention forward, by compute type."""
    found = []
    for compute in asked.computes:
        attend = jax.jit(lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True))
        for samples, heads, tokens, width in ATTENTION[asked.size]:
            q = jnp.ones((samples, tokens, heads, width), _DTYPES[compute])
            shape = {"samples": samples, "heads": heads, "tokens": tokens, "width": width}
            seconds = timed(lambda q=q, of=attend: of(q), asked.each_s)  # type: ignore[misc]
            found.append({"compute": compute, **shape, "seconds": seconds})
    return found


def copies(asked: Plan) -> list[dict[str, Any]]:
    """Seconds to copy an array (scaled, or the compiler would not copy it); ``moved_bytes`` are read and written."""
    scaled = jax.jit(lambda a: a * 1.5)
    found = []
    for size_bytes in COPY_BYTES[asked.size]:
        source = jnp.ones(size_bytes // 4, jnp.float32)
        seconds = timed(lambda s=source: scaled(s), asked.each_s)  # type: ignore[misc]
        found.append({"moved_bytes": 2 * size_bytes, "seconds": seconds})
    return found


def launch_s(asked: Plan) -> float:
    """What calling a compiled program costs however small it is."""
    added, number = jax.jit(lambda a: a + 1), jnp.ones(1)
    return timed(lambda: added(number), asked.each_s)


def collectives(asked: Plan) -> list[dict[str, Any]]:
    """Seconds of each collective over all devices, by size."""
    mesh = Mesh(jax.devices()[: asked.ranks], ("ranks",))
    found = []
    for kind, (work, is_whole) in _COLLECTIVES.items():
        spec_in = PartitionSpec() if is_whole else PartitionSpec("ranks")
        spec_out = PartitionSpec("ranks") if kind == "reduce_scatter" else PartitionSpec()
        program = jax.jit(jax.shard_map(work, mesh=mesh, in_specs=spec_in, out_specs=spec_out, check_vma=False))
        for size_bytes in COLLECTIVES[asked.size]:
            shape = (size_bytes // 4 // asked.ranks * asked.ranks,)
            array = jax.device_put(jnp.ones(shape, jnp.float32), NamedSharding(mesh, spec_in))
            seconds = timed(lambda a=array, of=program: of(a), asked.each_s)  # type: ignore[misc]
            found.append({"kind": kind, "ranks": asked.ranks, "size_bytes": array.nbytes, "seconds": seconds})
    return found


_COLLECTIVES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "all_reduce": (lambda a: jax.lax.psum(a, "ranks"), True),
    "all_gather": (lambda a: jax.lax.all_gather(a, "ranks", tiled=True), False),
    "reduce_scatter": (lambda a: jax.lax.psum_scatter(a, "ranks", tiled=True), True),
}
"""And whether each device begins with the whole array."""


def about() -> dict[str, Any]:
    """What the device is called and how much memory it has; of a CPU the caller knows better."""
    device = jax.devices()[0]
    limits = device.memory_stats() or {}
    name = device.device_kind if device.platform != "cpu" else ""
    return {"device": name, "memory_bytes": limits.get("bytes_limit", 0), "version": jax.__version__}


def main() -> int:
    ranks, threads, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    jax.config.update("jax_num_cpu_devices", ranks)
    size = "cpu" if jax.default_backend() == "cpu" else "gpu"
    asked = plan(size, min(ranks, len(jax.devices())), threads, seconds)
    found = {
        "matmul": matmuls(asked),
        "copy": copies(asked),
        "attention": attentions(asked),
        "launch_s": launch_s(asked),
        "collective": collectives(asked) if asked.ranks > 1 else [],
    }
    print(json.dumps({**about(), "ranks": asked.ranks, "threads": threads, "platform": size, **found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
