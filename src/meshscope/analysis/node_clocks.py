"""How far the clocks of a run's nodes are apart: by the ends of collectives, which all of their ranks leave together.

Where no window of both was traced the ends of the steps stand in: every step ends with a collective or shortly after
one, so they tell the clocks apart to within what follows it, which differs between machines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from meshscope.analysis.matching import matches
from meshscope.analysis.rounds import rounds
from meshscope.analysis.steps import finished_steps
from meshscope.run import Run
from meshscope.spans import Window

COLLECTIVES, STEPS, UNKNOWN = "collectives", "steps", ""


@dataclass(frozen=True)
class Offset:
    """A node's clock is ``ahead_ns`` ahead of the first node's. ``by`` is COLLECTIVES or STEPS, or UNKNOWN."""

    ahead_ns: int = 0
    by: str = UNKNOWN
    count: int = 0


def offset(first: Run, other: Run) -> Offset:
    """Of a node against the first one; times count from each recording's own start."""
    apart_ns = other.experiment.t0_unix_ns - first.experiment.t0_unix_ns
    rough = _by_steps(first, other)
    fine = _by_collectives(first, other)
    found = fine if fine.count else rough
    return replace(found, ahead_ns=found.ahead_ns + apart_ns) if found.by else found


def _by_steps(first: Run, other: Run) -> Offset:
    """The median distance of the ends of the steps that both have finished, by times since each one's start."""
    a, b = finished_steps(first), finished_steps(other)
    _, at, bt = np.intersect1d(a.number, b.number, return_indices=True)
    if not len(at):
        return Offset()
    return Offset(int(np.median(b.end_ns[bt] - a.end_ns[at])), STEPS, len(at))


def _by_collectives(first: Run, other: Run) -> Offset:
    """Of the collectives of every traced round, by the aligned clocks of their ranks."""
    ranks = {window.rank for window in first.windows}
    named: list[Window] = [
        *(replace(window, host="the first node") for window in first.windows),
        *(replace(window, host="the other node") for window in other.windows),
    ]
    ahead: list[int] = []
    count = 0
    for members in rounds(replace(first, windows=tuple(named))):
        here = [member.rank for member in members if member.rank in ranks]
        there = [member.rank for member in members if member.rank not in ranks]
        if not here or not there:
            continue
        found = matches(members, first.experiment.ranks)
        both = [one for one in found.found if {members[at].rank for at in one.at} & ranks]
        both = [one for one in both if {members[at].rank for at in one.at} - ranks]
        if not both:
            continue
        count += sum(one.row.shape[1] for one in both)
        clocks = found.clocks
        ahead.append(round(float(np.median([clocks[rank].offset_ns for rank in there]))
                           - float(np.median([clocks[rank].offset_ns for rank in here]))))  # fmt: skip
    return Offset(int(np.median(ahead)), COLLECTIVES, count) if ahead else Offset()


def in_words(run: Run, found: Offset, node: str) -> str:
    """What was done about a node's clock, for a note."""
    if found.by == UNKNOWN:
        return f"{run.name}: nothing tells how far the clock of {node} is off; it is taken as it is."
    apart = f"{abs(found.ahead_ns) / 1e9:.3f} s {'ahead of' if found.ahead_ns >= 0 else 'behind'}"
    if found.by == COLLECTIVES:
        of = f"by the ends of {found.count} collectives"
    else:
        of = f"by the ends of {found.count} steps alone, since no collective of both was traced"
    return f"{run.name}: the clock of {node} is {apart} that of the first node, {of}; its times are moved by that."
