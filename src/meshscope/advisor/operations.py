"""A model laid over devices, as the ordered operations of one rank of each class.

A class is a stage of the pipeline: its ranks do the same. Layers alike are listed once and counted. What an operation
costs is said elsewhere; here stand its FLOPs, its bytes, the shapes of its products and the groups of its collectives.

Sources: Megatron-LM (arXiv 2104.04473, 2205.05198: tensor and sequence parallelism), ZeRO (arXiv 1910.02054), PyTorch
FSDP (arXiv 2304.11277), ring attention (arXiv 2310.01889), FlashAttention (arXiv 2205.14135: backward is five products
for forward's two), Switch Transformers (arXiv 2101.03961: all-to-alls of experts).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from meshscope.advisor.architecture import Architecture
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.layers import Layers
from meshscope.advisor.operation import Groups, Layer, Operation, Stage, groups
from meshscope.advisor.stacks import of

__all__ = ["Groups", "Layer", "Operation", "Stage", "groups", "stage_counts", "stages"]


def stages(architecture: Architecture, candidate: Candidate) -> tuple[Stage, ...]:
    """The classes that differ, in order: first, middle (where there is one) and last stage, or the only one.

    `stage_counts` says how many there are of each.
    """
    return _stages(architecture, _shape_of(candidate))


def stage_counts(candidate: Candidate) -> tuple[int, ...]:
    """How many stages there are of each class that `stages` lists."""
    if candidate.pipeline == 1:
        return (1,)
    return (1, 1) if candidate.pipeline == 2 else (1, candidate.pipeline - 2, 1)


def _shape_of(candidate: Candidate) -> Candidate:
    """Without what operations do not depend on, so that candidates that differ in it share them."""
    return replace(candidate, strategy="", accumulate=1, schedule="", bucket_bytes=0, prefetch=1, is_overlapped=True)


@lru_cache(maxsize=4096)
def _stages(architecture: Architecture, candidate: Candidate) -> tuple[Stage, ...]:
    maker = Layers(architecture, candidate, of(candidate.stack))
    first, last, kinds = maker.embedding(), maker.head(), maker.layer_kinds()
    if candidate.pipeline == 1:
        return (Stage(first, kinds, last),)
    each = max(1, -(-architecture.layers // candidate.pipeline))
    handover = maker.handover_bytes()
    later = ((kinds[-1][0], each),)
    ends = (Stage(first, _portion(kinds, each), None, handover), Stage(None, later, last, handover))
    if candidate.pipeline == 2:
        return ends
    return (ends[0], Stage(None, later, None, handover), ends[1])


def _portion(kinds: tuple[tuple[Layer, int], ...], each: int) -> tuple[tuple[Layer, int], ...]:
    """The first ``each`` layers: the first stage's, which has as many as the fullest."""
    taken, left = [], each
    for layer, many in kinds:
        if left and many:
            taken.append((layer, min(many, left)))
            left -= taken[-1][1]
    return tuple(taken)
