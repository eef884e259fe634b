"""The critical path over ranks: the chain of work, launches, collectives and delays that took all of the steps' time.

Dependencies are inferred where traces do not record them: work follows what ended last before it on its stream (on all
of a device's threads for XLA), a kernel its launch, launches the order of the host, and no rank leaves a collective
before all have come. Time that no dependency explains stays with what it came before, as ``host`` or ``delay``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from meshscope.analysis.device_steps import device_step_ns
from meshscope.analysis.graph import Graph
from meshscope.analysis.graph_run import RoundGraph, measure
from meshscope.analysis.parts import per_round
from meshscope.analysis.path_pieces import Pieces, measured
from meshscope.analysis.path_works import OnPath, on_path
from meshscope.analysis.replay import chain, replay
from meshscope.analysis.rounds import Round, rounds
from meshscope.analysis.waiting import world
from meshscope.analysis.what_if import WhatIf, what_ifs
from meshscope.analysis.what_if_caveats import cautioned
from meshscope.run import Run
from meshscope.units import percent

MOST_ERROR = 0.05
"""A replay of the steps as they were that is further off than this is no ground for any other."""


@dataclass(frozen=True)
class Leg:
    """A stretch of the path on one rank, in ns after its beginning."""

    rank: int
    from_ns: int
    to_ns: int


@dataclass(frozen=True)
class CriticalPath:
    """One round of windows. ``parts`` and ``by_rank`` each add up to ``of_ns`` exactly.

    ``of_ns`` is from when the first rank comes to the first of ``steps`` (a device has then done what was launched
    before) to when the last is through with the last; of whole windows where there is no step. ``error_ns`` is how far
    a replay with nothing changed is from that. ``works`` are the named spans on the path by time, longest first.
    ``untold`` says of which questions the answer is missing, and why. ``is_unchecked``: launches are recorded and no
    wait of a host for its device, so that nothing on the path can hold a host up. ``legs`` are the ranks
    that the path is on, one after the other: neighbours differ, and together they are all of ``of_ns``.
    """

    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    of_ns: int
    parts: dict[str, int]
    by_rank: dict[int, int]
    works: tuple[OnPath, ...]
    error_ns: int
    what_ifs: tuple[WhatIf, ...]
    untold: tuple[tuple[str, str], ...]
    is_unchecked: bool = False
    legs: tuple[Leg, ...] = ()

    @property
    def switches(self) -> int:
        """How often the path goes from one rank to another."""
        return max(len(self.legs) - 1, 0)


def critical_paths(run: Run) -> tuple[CriticalPath, ...]:
    """One for each round of windows that has a path, in order; its answers with what the ranks' cores make of them."""
    here = world(run)
    found = (of_round(members, here) for members in rounds(run))
    return tuple(replace(one, what_ifs=cautioned(one.what_ifs, run)) for one in found if one is not None)


@per_round
def of_round(windows: Round, world: int) -> CriticalPath | None:
    """The path of some windows, None where they have none; ``world`` is how many ranks there are, 0 if unknown."""
    found = measure(windows, world)
    return _path(found, found.graph) if found.graph is not None and found.graph.length_ns > 0 else None


def marked_step_ns(path: CriticalPath, run: Run) -> float:
    """How long a step of the path takes each rank, in the mean: its device's on a GPU; NaN where no step is marked.

    That is not always the path's own: ranks do not begin together, and what was launched in a step may run behind it.
    """
    windows = [one for one in run.windows if one.rank in path.ranks and set(path.steps) <= set(one.steps)]
    lengths_ns = [device_step_ns(one)[np.isin(one.steps, path.steps)] @ np.array([-1, 1]) for one in windows]
    known = [one for one in lengths_ns if len(one)]
    return float(np.mean(np.concatenate(known))) if known else math.nan


def doubts(run: Run) -> tuple[tuple[str, str], ...]:
    """Why there is no path, or no answer to a question about it."""
    here = world(run)
    said = {("critical_path", one.why): None for members in rounds(run) if (one := measure(members, here)).why}
    for path in critical_paths(run):
        said |= {(f"what_if.{name}", why): None for name, why in path.untold}
    return tuple(said)


def _path(found: RoundGraph, graph: Graph) -> CriticalPath:
    times_ns = replay(graph)
    error_ns = abs(int(times_ns[-1] - graph.time_ns[-1]))
    pieces = measured(found, graph, chain(graph, graph.time_ns))
    answers, untold = what_ifs(found)
    if error_ns > MOST_ERROR * graph.length_ns:
        why = f"the replay of the steps as they were is {percent(error_ns / graph.length_ns)} off"
        untold = (*untold, *((one.name, why) for one in answers))
        answers = ()
    return CriticalPath(
        ranks=tuple(here.rank for here in found.ranges),
        steps=found.steps,
        of_ns=graph.length_ns,
        parts=pieces.total_ns(),
        by_rank=_by_rank(pieces),
        works=on_path(found, pieces),
        error_ns=error_ns,
        what_ifs=answers,
        untold=untold,
        is_unchecked=found.has_host and not found.host_waits,
        legs=_legs(pieces, graph.start_ns),
    )


def _legs(pieces: Pieces, start_ns: int) -> tuple[Leg, ...]:
    took = pieces.where(pieces.length_ns > 0)
    first = np.flatnonzero(np.diff(took.rank, prepend=-2))
    last = np.append(first[1:], len(took.rank)) - 1
    bounds = (took.rank[first], took.from_ns[first] - start_ns, took.to_ns[last] - start_ns)
    return tuple(Leg(*leg) for leg in zip(*(column.tolist() for column in bounds), strict=True))


def _by_rank(pieces: Pieces) -> dict[int, int]:
    total = {int(one): int(pieces.length_ns[pieces.rank == one].sum()) for one in np.unique(pieces.rank).tolist()}
    return {one: ns for one, ns in total.items() if ns}
