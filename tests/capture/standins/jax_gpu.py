"""A JAX process on stand-in GPUs: the devices say they are GPUs and have an allocator, the arrays are real.

python jax_gpu.py RECORDING
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from meshscope.capture.workers import jax_checks, jax_memory
from meshscope.capture.workers.jax_watch import JaxWatch
from meshscope.capture.workers.post import Post
from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.experiment import Experiment


class Gpu:
    """Equal to the CPU device it stands for, so shards find it."""

    platform, device_kind = "gpu", "Stand-in"

    def __init__(self, device: jax.Device) -> None:
        self.device, self.id, self.local_hardware_id = device, device.id, device.id

    def __eq__(self, other: object) -> bool:
        return self.device == getattr(other, "device", other)

    def __hash__(self) -> int:
        return hash(self.device)

    def memory_stats(self) -> dict[str, int]:
        return {"bytes_in_use": 300 + self.id, "peak_bytes_in_use": 900 + self.id, "pool_bytes": 7000,
                "bytes_limit": 8000, "largest_free_block_bytes": 6100}  # fmt: skip


def main(recording: Path) -> None:
    devices = jax.devices()
    split = NamedSharding(jax.make_mesh((2,), ("rows",), axis_types=(AxisType.Auto,)), PartitionSpec("rows"))
    weights = jax.device_put(np.arange(16, dtype=np.float32).reshape(4, 4), split)
    jax.devices = jax.local_devices = lambda: [Gpu(device) for device in devices]
    now = time.time_ns()
    experiment = Experiment(
        t0_unix_ns=now, strategy="pjit", title="", framework="jax", ranks=2, device_kind="gpu", model="tiny",
        planned_steps=4, global_batch=4, sequence_length=16,
    )  # fmt: skip
    journal = RankJournal(recording, 0, t0_unix_ns=now)
    watch = JaxWatch(Post(recording, experiment, journal, SimpleNamespace(), 0, 0, check_every=2))
    compiled = jax.jit(lambda w: (w * 2).sum()).lower(weights).compile()
    watch.started(parameters=lambda: [weights], optimizer=list, compiled=compiled)
    sums = {Gpu(device): value for device, value in jax_checks.checksums([weights]).items()}
    on_gpu = {device: jax_checks._sum(device, [s.data for s in weights.addressable_shards if s.device == device.device])
              for device in sums}  # fmt: skip
    assert on_gpu == sums, "the compiled sum and numpy's agree"
    for step in range(4):
        with watch.step(step):
            watch.loss(compiled(weights))
    watch.finished()
    assert jax_memory.allocator(SimpleNamespace(memory_stats=lambda: None)) == dict.fromkeys(
        ("in_use", "peak", "pool", "limit", "largest_free"), -1
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
