"""Which candidates deserve to be computed: those that may fit, by layout, the most promising first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from meshscope.advisor.bounds import least_bytes
from meshscope.advisor.candidate import Candidate
from meshscope.advisor.estimate import estimated_s
from meshscope.advisor.naming import layout_key
from meshscope.advisor.question import Question
from meshscope.advisor.space import fillings, layouts


@dataclass(frozen=True)
class Group:
    """One layout: the candidates that may fit, the one that looks fastest first; ``smallest`` is the one with the
    lowest bound of memory, which tells how far from fitting a layout is of which none does."""

    candidates: tuple[Candidate, ...]
    estimated_s: float
    smallest: Candidate
    smallest_bytes: float

    @property
    def strategy(self) -> str:
        return self.smallest.strategy


@dataclass(frozen=True)
class Shortlist:
    """``groups`` in order of promise; ``hopeless`` those of which nothing can fit, the nearest first. ``legal`` counts
    candidates, ``too_large`` those of them that cannot fit by their bound."""

    groups: tuple[Group, ...]
    hopeless: tuple[Group, ...]
    legal: int
    too_large: int


def shortlist(question: Question) -> Shortlist:
    """Of every legal candidate."""
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for layout in layouts(question):
        groups.setdefault(layout_key(layout), []).extend(fillings(question, layout))
    limit_bytes = question.cluster.device.usable_bytes or question.cluster.device.memory_bytes
    found = [_group(question, candidates, limit_bytes) for candidates in groups.values() if candidates]
    legal = sum(map(len, groups.values()))
    kept = sum(len(group.candidates) for group in found)
    able = sorted((group for group in found if group.candidates), key=lambda group: group.estimated_s)
    unable = sorted((group for group in found if not group.candidates), key=lambda group: group.smallest_bytes)
    return Shortlist(tuple(able), tuple(unable), legal, legal - kept)


def _group(question: Question, candidates: list[Candidate], limit_bytes: float) -> Group:
    least = [(least_bytes(question.architecture, candidate), at) for at, candidate in enumerate(candidates)]
    small_bytes, smallest = min(least, key=lambda each: (each[0], *_thrift(candidates[each[1]])))
    able = [candidates[at] for size, at in least if size <= limit_bytes]
    timed = sorted((estimated_s(question.architecture, each, question.cluster), at) for at, each in enumerate(able))
    first_s = timed[0][0] if timed else float("inf")
    return Group(tuple(able[at] for _, at in timed), first_s, candidates[smallest], small_bytes)


def _thrift(candidate: Candidate) -> tuple[int, float]:
    """Where the bound is that of the state alone, what keeps fewer activations needs less all the same."""
    return ("full", "selective", "none").index(candidate.checkpointing), candidate.micro_batch


def first_of_each(groups: Iterable[Group]) -> Iterator[Group]:
    """The first group of each strategy."""
    seen: set[str] = set()
    for group in groups:
        if group.strategy not in seen:
            seen.add(group.strategy)
            yield group
