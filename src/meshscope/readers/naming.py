"""The rank that a file's name says, where it says one for certain."""

from __future__ import annotations

import re

# A rank within something smaller than the job is no rank of the job: local_rank0, tp_rank_1.
_RANK = re.compile(
    r"(?<![a-z])(?P<of>(?:local|node|host|group|[tpdec]p|sp|dcp)[-_ ]?)?rank[-_ =]?\[?(?P<rank>\d{1,6})(?!\d)",
    re.IGNORECASE,
)
_WORKER = re.compile(r"(?<![a-z])worker[-_]?(?P<rank>\d{1,6})(?=[._-]|$)", re.IGNORECASE)


def rank_in_name(name: str) -> int | None:
    """``rank0.json``, ``x_rank-12.json.gz``, ``worker3.1690000000.pt.trace.json``; None where names leave doubt."""
    told = {int(found["rank"]) for found in _RANK.finditer(name) if not found["of"]}
    if not told:
        told = {int(found["rank"]) for found in _WORKER.finditer(name)}
    return told.pop() if len(told) == 1 else None


def without_rank(name: str) -> str:
    """The name with its rank, or else all its numbers, taken out: equal for the files of one run."""
    if rank_in_name(name) is not None:
        return _WORKER.sub("worker#", _RANK.sub("rank#", name))
    return re.sub(r"\d+", "#", name)


def series(names: list[str]) -> list[int] | None:
    """The numbers of names that differ in one number only, and count from 0 without a gap; None of others."""
    if len(names) < 2 or len({re.sub(r"\d+", "#", name) for name in names}) > 1:
        return None
    columns = list(zip(*(map(int, re.findall(r"\d+", name)) for name in names), strict=True))
    differing = [column for column in columns if len(set(column)) > 1]
    if len(differing) != 1 or sorted(differing[0]) != list(range(len(names))):
        return None
    return list(differing[0])
