"""Straggler: one rank comes late to collectives and the others wait for it.

Fires when a rank is late in three steps or more and costs each other rank two hundredths of the time. On CPU ranks that
share their cores the scheduler makes some rank late in every step; there it has to be late, and the latest, in so many
steps as would be chance in one of a hundred runs only, and to cost a twentieth.
"""

from __future__ import annotations

from math import comb

import numpy as np

from meshscope.analysis.findings.rule import Finding, Rule, share
from meshscope.analysis.findings.whole import shares_cores, traced_step
from meshscope.analysis.lateness import Pattern, lateness, pattern
from meshscope.analysis.stragglers import Straggler, stragglers
from meshscope.run import Run
from meshscope.units import duration, percent

FEWEST_STEPS = 3
LEAST_FRAC, LEAST_SHARED_FRAC = 0.02, 0.05
CHANCE = 0.01

_FIXES = {
    "data": "loader = torch.utils.data.DataLoader(dataset, num_workers=8, prefetch_factor=4, persistent_workers=True)",
    "idle": "py-spy dump --pid PID      # on the late rank: what its host does while its device has nothing to do",
    "compute": "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE    # on the late rank's device: throttled, or shared?",
}
_ADVICE = {
    "data": "It waits for its batches longer than the others: give its loader more workers, or shards of equal size.",
    "idle": "Its host is late: look for work that only this rank does, such as logging, checkpoints or evaluation.",
    "compute": "It computes longer: a slower or throttled device, other work on it, or a larger share of the batch.",
    "copy": "It copies longer than the others: pin its host memory, and see where its device is attached.",
    "communication": "It communicates with others meanwhile: give its groups less, or the groups another order.",
}
_ELSE = "Compare what it does with the median rank, in the timeline, step by step."


def straggler(run: Run) -> tuple[Finding, ...]:
    late, seen = stragglers(run), pattern(lateness(run))
    return tuple(_finding(one, seen, run) for one in late if _is_material(one, run))


def _is_material(one: Straggler, run: Run) -> bool:
    if one.late_steps < FEWEST_STEPS:
        return False
    if not shares_cores(run):
        return one.cost_frac >= LEAST_FRAC
    return one.cost_frac >= LEAST_SHARED_FRAC and _by_chance(one.rank, run) <= CHANCE


def _by_chance(rank: int, run: Run) -> float:
    """How likely it is that any of the ranks is the latest so often, if each step picked one of them at random."""
    found = lateness(run)
    late_ns = np.nan_to_num(found.late_ns)
    latest = (late_ns.argmax(axis=0) == found.ranks.index(rank)) & (late_ns.max(axis=0) > 0)
    steps, times, ranks = len(found.steps), int(latest.sum()), len(found.ranks)
    tail = sum(comb(steps, k) * (1 / ranks) ** k * (1 - 1 / ranks) ** (steps - k) for k in range(times, steps + 1))
    return min(1.0, ranks * tail)


def _finding(one: Straggler, seen: Pattern, run: Run) -> Finding:
    said = f"rank {one.rank} came last to {one.last} of {one.calls} collectives and held up each other rank "
    said += f"{duration(one.cost_ns)} of the {duration(one.of_ns)} traced"
    since = f"late in {one.late_steps} of {one.steps} steps, since step {one.since}"
    evidence = [said, since]
    if one.phase:
        evidence.append(f"{_PHASES[one.phase]} {duration(one.phase_ns)} longer than the median rank")
    if seen.kind == "node" and one.rank in seen.ranks:
        evidence.append(f"so are all ranks of machine {seen.host}")
    return Finding(
        code=FINDING.code,
        title="straggler",
        ranks=(one.rank,),
        **vars(share(one.cost_frac, traced_step(run))),
        evidence=(*evidence, f"that is {percent(one.cost_frac)} of the time traced"),
        advice=_ADVICE.get(one.phase, _ELSE),
        fix=_FIXES.get(one.phase, _FIXES["idle"]),
    )


_PHASES = {
    "compute": "it computes",
    "copy": "it copies",
    "communication": "it communicates",
    "data": "it waits for its batch",
    "idle": "its device has nothing to do",
}


FINDING = Rule("straggler", straggler)
