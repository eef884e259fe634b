"""Which ranks a simulated step is drawn for, and who meets whom in a collective.

Ranks are numbered as launchers and Megatron-LM do by default: neighbours share a tensor group, then a context group,
then shards, then replicas, and stages of the pipeline are furthest apart (megatron/core/parallel_state.py, order
``tp-cp-ep-dp-pp``; torchtitan builds its mesh the same way).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.coverage import NotCovered

MOST_RANKS = 16
"""So many ranks are drawn one by one; of more, the first of each class stands for those that are like it."""

_ENDS_AND_MIDDLE = 3
_ORDER = ("tensor", "context", "shard", "replicate", "pipeline")
_SPANS: dict[str, tuple[str, ...]] = {
    **{axis: (axis,) for axis in _ORDER},
    "data": ("shard", "replicate"),
    "data_context": ("context", "shard", "replicate"),
    "shard_context": ("context", "shard"),
    "world": _ORDER,
}
_EXPERTS = ("expert", "experts")
"""What a group's name means in axes of the mesh."""


@dataclass(frozen=True)
class Drawn:
    """One rank that is drawn; ``stands_for`` are the ranks that do the same at the same time, itself among them."""

    rank: int
    rank_class: int
    stands_for: tuple[int, ...]


def drawn(candidate: Candidate, classes: tuple[int, ...], *, most: int = MOST_RANKS) -> tuple[Drawn, ...]:
    """All ranks of the candidate where they are few, else the first rank of every class.

    ``classes`` are the numbers of the classes that were simulated, in order: one for all ranks alike, one for each
    stage of the pipeline, or three for its first stage, those between, and its last.
    """
    members = {number: tuple(ranks(candidate, number, classes)) for number in classes}
    if candidate.devices > most:
        return tuple(Drawn(mine[0], number, mine) for number, mine in members.items() if mine)
    whose = {rank: number for number, mine in members.items() for rank in mine}
    return tuple(Drawn(rank, whose[rank], (rank,)) for rank in sorted(whose))


def ranks(candidate: Candidate, rank_class: int, classes: tuple[int, ...]) -> range:
    """Of one class, which is a stretch of stages. Raises NotCovered where that many classes are no stages' own."""
    each, stages = candidate.devices // candidate.pipeline, candidate.pipeline
    at = classes.index(rank_class)
    if len(classes) == 1:
        return range(candidate.devices)
    if len(classes) == stages:
        first, end = at, at + 1
    elif len(classes) == _ENDS_AND_MIDDLE and stages > _ENDS_AND_MIDDLE:
        first, end = ((0, 1), (1, stages - 1), (stages - 1, stages))[at]
    else:
        raise NotCovered(f"{len(classes)} classes of ranks do not say which of {stages} stages each of them is")
    return range(first * each, end * each)


def group(candidate: Candidate, rank: int, name: str) -> tuple[int, ...]:
    """The ranks that meet this one in a group of that name, in order; all of them where the name says no axes."""
    if name in _EXPERTS:
        return _expert_group(candidate, rank)
    along = _along(candidate, name)
    at, sizes = _coordinates(candidate, rank), _sizes(candidate)
    found = [0]
    for axis in reversed(_ORDER):
        places = range(sizes[axis]) if axis in along else (at[axis],)
        stride = math.prod(sizes[below] for below in _ORDER[: _ORDER.index(axis)])
        found = [base + place * stride for base in found for place in places]
    return tuple(sorted(found))


def _along(candidate: Candidate, name: str) -> tuple[str, ...]:
    """The axes of a group. Ranks that share a sequence hold the same parameters: state is sharded over them too, and
    where gradients are only added up they are among those that add."""
    along = _SPANS.get(name, _ORDER)
    is_sharded = candidate.zero_stage >= 1
    if (name == "shard" and is_sharded) or (name == "replicate" and not is_sharded):
        return ("context", *along)
    return along


def _expert_group(candidate: Candidate, rank: int) -> tuple[int, ...]:
    """Experts are spread over neighbours on the data axes, or over the tensor axis too."""
    stride = 1 if candidate.is_expert_over_tensor else candidate.tensor
    block, within = divmod(rank, stride * candidate.expert)
    first = block * stride * candidate.expert + within % stride
    return tuple(range(first, first + stride * candidate.expert, stride))


def _sizes(candidate: Candidate) -> dict[str, int]:
    return {axis: getattr(candidate, axis) for axis in _ORDER}


def _coordinates(candidate: Candidate, rank: int) -> dict[str, int]:
    found = {}
    for axis in _ORDER:
        rank, found[axis] = divmod(rank, getattr(candidate, axis))
    return found
