"""Fingerprints of a rank: equal where ranks should agree, different where a random stream should differ."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch

from meshscope.capture.workers.torch_memory import local


def checksum(tensors: Iterable[torch.Tensor]) -> float | None:
    """The sum over this rank's shards in float64, read from the device once; None where there is nothing to sum."""
    sums = [local(tensor).sum(dtype=torch.float64) for tensor in tensors]
    return float(torch.stack(sums).sum()) if sums else None


def random_state(*, has_cuda: bool) -> str:
    """A hash of torch's random generators on this rank."""
    digest = hashlib.blake2b(torch.get_rng_state().numpy().tobytes(), digest_size=8)
    if has_cuda:
        digest.update(torch.cuda.get_rng_state().numpy().tobytes())
    return digest.hexdigest()
