"""Fragmentation: memory that the allocator has reserved and cannot hand out.

Fires from a fifth of what is reserved on, and a gigabyte: less decides nothing on a device with tens of them. By a
snapshot that is what lies in split blocks; by a rank's counters what it reserved beyond the most that was allocated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.records import MemoryRecord
from meshscope.run import Run
from meshscope.units import percent, size

LEAST_FRAC = 0.2
LEAST_BYTES = 1_000_000_000

_FIX = "PYTORCH_ALLOC_CONF=expandable_segments:True torchrun …"
_FIX_JAX = "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async python …"


@dataclass(frozen=True)
class _Lost:
    rank: int
    lost_bytes: int
    reserved_bytes: int
    words: str


def fragmentation(run: Run) -> tuple[Finding, ...]:
    material = [
        one
        for one in (*_snapshots(run), *_counters(run))
        if one.lost_bytes >= max(LEAST_FRAC * one.reserved_bytes, LEAST_BYTES)
    ]
    if not material:
        return ()
    worst = sorted(material, key=lambda one: -one.lost_bytes)
    return (
        Finding(
            code=FINDING.code,
            title="memory is fragmented",
            ranks=tuple(sorted({one.rank for one in worst if one.rank >= 0})),
            evidence=tuple(one.words for one in worst[:4]),
            advice="It runs out of memory that it has. Let segments grow instead of splitting them, and keep shapes of "
            "activations the same from step to step.",
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
        ),
    )


def _snapshots(run: Run) -> Iterator[_Lost]:
    for record in run.records:
        if isinstance(record, MemoryRecord) and record.reserved_bytes and "inactive_split_bytes" in record.figures:
            lost, largest = record.figures["inactive_split_bytes"], record.figures.get("largest_free_bytes", 0)
            words = f"{_who(record.rank)}{size(lost)} of the {size(record.reserved_bytes)} reserved "
            words += f"({percent(lost / record.reserved_bytes)}) lie free in split blocks"
            words += f"; the largest free block has {size(largest)}" if largest else ""
            yield _Lost(record.rank, lost, record.reserved_bytes, words)


def _counters(run: Run) -> Iterator[_Lost]:
    told = (run.steps.reserved_bytes >= 0) & (run.steps.peak_bytes >= 0)
    for rank in np.unique(run.steps.rank[told]).tolist():
        table = run.steps.of(rank)
        mine = (table.reserved_bytes >= 0) & (table.peak_bytes >= 0)
        reserved, peak = int(table.reserved_bytes[mine].max()), int(table.peak_bytes[mine].max())
        words = f"{_who(rank)}{size(reserved)} reserved, of which at most {size(peak)} were allocated at once; "
        words += f"{percent((reserved - peak) / max(reserved, 1))} of the reserved were of no use"
        yield _Lost(rank, reserved - peak, reserved, words)


def _who(rank: int) -> str:
    return f"rank {rank}: " if rank >= 0 else ""


FINDING = Rule("fragmentation", fragmentation)
