"""Trains with one of the workloads and writes what its watch was told: ``trained.py OUT SCRIPT [FLAG…]``.

Run in a process of its own, or as the ranks of torchrun. Each rank writes ``OUT/rank<n>.json``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from options import parse
from watching import Watch


class Witness(Watch):
    """Notes the order of events, and how many buckets DDP sends."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.buckets = 0
        self.parameters = 0
        self.memory: dict[str, int] = {}

    def started(
        self, *, parameters: Callable[[], Any], optimizer: Callable[[], Any], compiled: Any = None, key: Any = None
    ) -> None:
        self.told.append("started")
        model, state = parameters(), optimizer()
        self.parameters = _local_size(model)
        self._current = parameters, optimizer
        if compiled is not None:
            plan = compiled.memory_analysis()
            self.memory = {"arguments": plan.argument_size_in_bytes, "temporaries": plan.temp_size_in_bytes}
        assert state is not None

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        self.told.append(f"step {number}")
        with super().step(number):
            yield
        model = self._current[0]()
        if hasattr(model, "_get_ddp_logging_data"):
            # DDP sorts its buckets anew after the first step, in the order in which gradients came.
            self.buckets = len(model._get_ddp_logging_data().get("rebuilt_bucket_sizes", "").split(","))
        for current in self._current:
            assert _local_size(current())  # JAX: the trees are those of this step, not the donated ones

    def batch(self, fetch: Callable[[], Any]) -> Any:
        self.told.append("batch")
        return super().batch(fetch)

    def loss(self, value: Any) -> float:
        self.told.append("loss")
        return super().loss(value)

    def finished(self) -> None:
        self.told.append("finished")


def _local_size(held: Any) -> int:
    """Numbers held by this rank (torch) or by each device of this process (JAX)."""
    if hasattr(held, "parameters"):
        return sum(getattr(p, "to_local", lambda p=p: p)().numel() for p in held.parameters())
    if hasattr(held, "param_groups"):
        return len(held.param_groups)
    import jax

    return sum(leaf.addressable_shards[0].data.size for leaf in jax.tree.leaves(held))


def main(out: Path, script: str, flags: list[str]) -> None:
    witness = Witness()
    losses = importlib.import_module(script).train(parse(flags), witness)
    seen = {"losses": losses, "told": witness.told, "buckets": witness.buckets, "parameters": witness.parameters}
    (out / f"rank{os.environ.get('RANK', '0')}.json").write_text(json.dumps(seen | witness.memory))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
