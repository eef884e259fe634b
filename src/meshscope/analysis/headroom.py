"""How far a device was from running out of memory, at its fullest.

On GPUs the device's own sensor counts everybody: this process's pool, its context, other processes. Without one, what
the allocator had taken is set against the device's memory, and what others hold is not known. JAX takes its pool at
once, so there the pool's limit is what counts. On CPU ranks it is the cgroup's limit where there is one, else the
host's memory, which all ranks share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshscope.analysis.memory import RankMemory, memory
from meshscope.run import Run
from meshscope.units import ratio

DEVICE, POOL, HOST, CGROUP = (
    "the device's memory", "the most that JAX's pool may take", "the host's memory", "the cgroup's limit",
)  # fmt: skip
_UNKNOWN = "neither the device's memory nor a limit of the allocator was recorded"


@dataclass(frozen=True)
class Headroom:
    """``free_bytes`` is what was left of ``capacity_bytes`` at the fullest moment, ``frac`` its share of the capacity.

    ``ranks`` share the capacity. ``held_bytes`` is what their allocators had taken (for JAX, what was in use), None
    where nobody counts it; ``others_bytes`` what the sensor saw beyond that: contexts and other processes.
    """

    ranks: tuple[int, ...]
    of: str
    capacity_bytes: int
    free_bytes: int
    held_bytes: int | None
    others_bytes: int | None

    @property
    def frac(self) -> float:
        return ratio(self.free_bytes, self.capacity_bytes)


def headroom(run: Run) -> tuple[Headroom, ...]:
    """By rank, those of the host first; without the ranks of which nothing is known."""
    ranks = memory(run)
    kinds = {started.rank: started.device_kind for started in run.ranks}
    is_on_cpu = [_is_on_cpu(run, rank, kinds) for rank in ranks]
    on_host = tuple(sorted({rank.rank for rank, is_it in zip(ranks, is_on_cpu, strict=True) if is_it}))
    reserved = _reserved_by_rank(run)
    found = [_host(run, on_host)] if on_host else []
    found += [_of_device(run, rank, reserved) for rank, is_it in zip(ranks, is_on_cpu, strict=True) if not is_it]
    return tuple(one for one in found if one is not None)


def headroom_doubt(run: Run) -> str:
    """Why some rank's headroom is not known; "" where all are."""
    known = {rank for one in headroom(run) for rank in one.ranks}
    lacking = {rank.rank for rank in memory(run)} - known
    if not lacking:
        return ""
    return _UNKNOWN if not known else f"rank {', '.join(map(str, sorted(lacking)))}: {_UNKNOWN}"


def _is_on_cpu(run: Run, rank: RankMemory, kinds: dict[int, str]) -> bool:
    if rank.record is not None:
        return rank.record.device_kind == "cpu"
    return kinds.get(rank.rank, run.experiment.device_kind) == "cpu"


def _fullest(run: Run, device: str, used: str, total: str) -> tuple[int, int] | None:
    """(used, total) at the reading that left the least; None where there is none that makes sense."""
    used_ns, used_bytes = run.samples.series(device, used)
    total_ns, total_bytes = run.samples.series(device, total)
    at = np.isin(used_ns, total_ns)
    used_bytes, total_bytes = used_bytes[at], total_bytes[np.isin(total_ns, used_ns)]
    if len(used_bytes) != len(total_bytes):
        return None
    known = np.flatnonzero(np.isfinite(used_bytes) & np.isfinite(total_bytes) & (total_bytes > 0))
    if not len(known):
        return None
    least = known[(total_bytes[known] - used_bytes[known]).argmin()]
    return int(used_bytes[least]), int(total_bytes[least])


def _host(run: Run, ranks: tuple[int, ...]) -> Headroom | None:
    limited = _fullest(run, "host", "cgroup_used_bytes", "cgroup_limit_bytes")
    whole = _fullest(run, "host", "memory_used_bytes", "memory_total_bytes")
    # Whichever leaves less is met first.
    found = [(total - used, used, total, of) for pair, of in ((limited, CGROUP), (whole, HOST)) if pair
             for used, total in (pair,)]  # fmt: skip
    if not found:
        return None
    free_bytes, _, total, of = min(found)
    return Headroom(ranks, of, total, free_bytes, None, None)


def _of_device(run: Run, rank: RankMemory, reserved: dict[int, int]) -> Headroom | None:
    if rank.limit_bytes is not None:
        held_bytes = rank.peak_bytes if rank.peak_how == "measured" else rank.in_use_bytes
        return None if held_bytes is None else _left(rank, POOL, rank.limit_bytes, held_bytes)
    held = _reserved(rank, reserved)
    seen = _fullest(run, f"gpu {rank.device}", "memory_used_bytes", "memory_total_bytes")
    if seen is not None:
        used_bytes, total_bytes = seen
        others = used_bytes - held if held is not None and held <= used_bytes else None
        return Headroom((rank.rank,), DEVICE, total_bytes, total_bytes - used_bytes, held, others)
    if held is None or rank.capacity_bytes is None:
        return None
    return _left(rank, DEVICE, rank.capacity_bytes, held)


def _left(rank: RankMemory, of: str, capacity_bytes: int, held_bytes: int) -> Headroom:
    return Headroom((rank.rank,), of, capacity_bytes, capacity_bytes - held_bytes, held_bytes, None)


def _reserved(rank: RankMemory, reserved: dict[int, int]) -> int | None:
    """The most that the allocator had taken after any step, or else at the newest measurement."""
    known = [reserved[rank.rank]] if rank.rank in reserved and rank.record is None else []
    return max([*known, *([rank.pool_bytes] if rank.pool_bytes is not None else [])], default=None)


def _reserved_by_rank(run: Run) -> dict[int, int]:
    is_told = run.steps.reserved_bytes >= 0
    rank, size_bytes = run.steps.rank[is_told], run.steps.reserved_bytes[is_told]
    if not len(rank):
        return {}
    starts = np.flatnonzero(np.append(True, rank[1:] != rank[:-1]))  # sorted by rank
    return dict(zip(rank[starts].tolist(), np.maximum.reduceat(size_bytes, starts).tolist(), strict=True))
