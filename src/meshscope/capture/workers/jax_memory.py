"""What each device of a JAX process holds: arrays by their shards, the compiled step by XLA's own plan."""

from __future__ import annotations

from typing import Any

import jax


def shard_bytes(tree: Any) -> dict[Any, int]:
    """Device → bytes of the tree's arrays on it; a replicated array counts on every device."""
    sizes: dict[Any, int] = {}
    for leaf in jax.tree_util.tree_leaves(tree):
        for shard in getattr(leaf, "addressable_shards", ()):
            sizes[shard.device] = sizes.get(shard.device, 0) + shard.data.nbytes
    return sizes


def planned_bytes(compiled: Any) -> tuple[int, int] | None:
    """(temporaries, peak) of one device for one run of the step as XLA planned it; None where it does not tell.

    Temporaries hold activations and gradients, and results that do not take the place of an argument. The peak is
    added up from the parts: on CPU ``peak_memory_in_bytes`` is no more than the arguments.
    """
    analysis = compiled.memory_analysis() if hasattr(compiled, "memory_analysis") else None
    if isinstance(analysis, list | tuple):
        analysis = analysis[0] if analysis else None
    if analysis is None:
        return None
    results = max(0, analysis.output_size_in_bytes - analysis.alias_size_in_bytes)
    temporaries = analysis.temp_size_in_bytes + results
    return temporaries, analysis.argument_size_in_bytes + temporaries


def allocator(device: Any) -> dict[str, int]:
    """What the device's allocator counts, −1 where unknown.

    ``in_use``, ``peak``, ``pool`` (all it has taken), ``limit`` (the most it may take) and ``largest_free`` (the
    largest block of the pool that is free).
    """
    stats = device.memory_stats() or {}
    pool = stats.get("pool_bytes", stats.get("bytes_reserved", -1))
    return {
        "in_use": int(stats.get("bytes_in_use", -1)),
        "peak": int(stats.get("peak_bytes_in_use", -1)),
        "pool": int(pool) if pool else -1,
        "limit": int(stats.get("bytes_limit") or -1),
        "largest_free": int(stats.get("largest_free_block_bytes", -1)),
    }
