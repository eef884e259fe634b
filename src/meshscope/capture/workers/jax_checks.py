"""Fingerprints per device: sums that are equal where replicas agree, and random keys that may have to differ."""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import numpy as np

SUM_NAME = "_meshscope_sum"


def _meshscope_sum(leaves: list[Any]) -> Any:
    return sum((jax.numpy.sum(leaf, dtype=jax.numpy.float32) for leaf in leaves), start=jax.numpy.float32(0))


_SUM = jax.jit(_meshscope_sum)


def checksums(tree: Any) -> dict[Any, float]:
    """Device → the sum over its own shards, in float32: the same bytes give the same number, and it is cheap."""
    shards: dict[Any, list[Any]] = {}
    for leaf in jax.tree_util.tree_leaves(tree):
        for shard in getattr(leaf, "addressable_shards", ()):
            shards.setdefault(shard.device, []).append(shard.data)
    return {device: _sum(device, arrays) for device, arrays in shards.items()}


def _sum(device: Any, arrays: list[Any]) -> float:
    if device.platform == "cpu":
        # On CPU numpy sees the very memory; no program is compiled for it.
        return sum(float(np.asarray(array).sum(dtype=np.float32)) for array in arrays)
    return float(_SUM(arrays))


def _held(array: Any) -> Any:
    """An array; of one that lies on other processes' devices too, the rows that are on this one's, in their order."""
    if getattr(array, "is_fully_addressable", True) or array.is_fully_replicated:
        return np.asarray(array)
    shards = sorted(array.addressable_shards, key=lambda shard: shard.index[0].start or 0)
    return np.concatenate([np.asarray(shard.data) for shard in shards])


def key_hashes(key: Any, count: int) -> list[str]:
    """A hash of the random key of each of ``count`` devices: its own where each has one, else the one of all."""
    if key is None:
        return [""] * count
    typed = jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key)
    data = _held(jax.random.key_data(key) if typed else key)
    rows = data if data.ndim > 1 and len(data) == count else [data] * count
    return [hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=8).hexdigest() for row in rows]
