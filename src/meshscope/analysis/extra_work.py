"""Work that one rank does and the others do not, by the names of what it computes.

Ranks of one program run the same operations equally often, however long each takes: a count does not depend on who
got a core, so a difference in one profiled step is none of chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshscope.analysis.parts import per_window
from meshscope.analysis.rounds import Round, rounds
from meshscope.intervals import union
from meshscope.run import Run
from meshscope.spans import Kind, Window

_TIMES = 10
"""It calls something ten times as often as any other rank does: nine of ten calls are its own."""

Counts = dict[str, int]


@dataclass(frozen=True)
class Extra:
    """What a rank runs beyond the others in every round that it is in, ``ns`` of time in all.

    ``name`` is what most of it is: in the round with most of it called ``calls`` times, and by no other rank more than
    ``others`` times.
    """

    ns: int
    name: str
    calls: int
    others: int


def extra_work(rank: int, run: Run) -> Extra | None:
    """None where in some round it runs nothing that others do not, or windows do not hold the same whole steps."""
    found = []
    for members in rounds(run):
        own = next((window for window in members if window.rank == rank), None)
        if own is None:
            continue
        one = _extra(own, members)
        if one is None:
            return None
        found.append(one)
    if not found:
        return None
    most = max(found, key=lambda one: one.ns)
    return Extra(sum(one.ns for one in found), most.name, most.calls, most.others)


def _extra(own: Window, members: Round) -> Extra | None:
    others = [_counts(window) for window in members if window.rank != own.rank]
    mine = _counts(own)
    if not others or not own.steps or any(not one.is_complete or one.steps != own.steps for one in members):
        return None
    at_most = {name: max(counts.get(name, 0) for counts in others) for name in mine}
    beyond = [name for name, count in mine.items() if _TIMES * at_most[name] <= count]
    if not beyond:
        return None
    spent = {name: _busy_ns(own, (name,)) for name in beyond}
    most = max(beyond, key=lambda name: (spent[name], name))
    return Extra(_busy_ns(own, beyond), most, mine[most], at_most[most])


@per_window
def _counts(window: Window) -> Counts:
    spans = window.spans
    numbers = spans.name[(spans.kind == Kind.COMPUTE) & (spans.name >= 0)]
    counts = np.bincount(numbers, minlength=len(spans.names))
    return {name: int(count) for name, count in zip(spans.names, counts.tolist(), strict=True) if count}


def _busy_ns(window: Window, names: tuple[str, ...] | list[str]) -> int:
    spans = window.spans
    wanted = np.array([name in set(names) for name in spans.names] + [False], dtype=bool)
    rows = (spans.kind == Kind.COMPUTE) & wanted[spans.name]
    return union(spans.start_ns[rows], spans.end_ns[rows]).total_ns
