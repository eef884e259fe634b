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


def replicas(tensors: Iterable[torch.Tensor]) -> dict[str, float]:
    """The sum of what this rank and others hold the same of, by all of these ranks.

    A DTensor says so itself, another tensor by an attribute ``shared_by``, the ranks. A DTensor that is still to be
    added up over ranks (partial) is the same on none.
    """
    held: dict[tuple[int, ...], list[torch.Tensor]] = {}
    for tensor in tensors:
        if len(ranks := _holders(tensor)) > 1:
            held.setdefault(ranks, []).append(tensor)
    return {",".join(map(str, ranks)): checksum(some) or 0.0 for ranks, some in sorted(held.items())}


def _holders(tensor: torch.Tensor) -> tuple[int, ...]:
    """The ranks that hold what this rank holds of a DTensor, or share another tensor; none where nothing says so."""
    if shared := getattr(tensor, "shared_by", ()):
        return tuple(shared)
    mesh = getattr(tensor, "device_mesh", None)
    here = None if mesh is None else mesh.get_coordinate()
    if mesh is None or here is None:
        return ()
    alike = tuple(
        slice(None) if placement.is_replicate() else place
        for placement, place in zip(tensor.placements, here, strict=True)
    )
    return tuple(mesh.mesh[alike].flatten().tolist())


def random_state(*, has_cuda: bool) -> str:
    """A hash of torch's random generators on this rank."""
    digest = hashlib.blake2b(torch.get_rng_state().numpy().tobytes(), digest_size=8)
    if has_cuda:
        digest.update(torch.cuda.get_rng_state().numpy().tobytes())
    return digest.hexdigest()
