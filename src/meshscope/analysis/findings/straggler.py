"""Straggler: one rank comes late to collectives and the others wait for it.

The cost is the time in which another rank waits for it and computes nothing, in the mean over the others: collectives
that wait side by side count once. Fires when a rank is late in three steps or more, for two hundredths of the time. On
CPU ranks that share their cores the scheduler makes some rank late in every step; there it has to be the latest in so
many steps as would be chance in one of a hundred runs only, and to cost a twentieth.
"""

from __future__ import annotations

from collections import defaultdict
from math import comb

import numpy as np

from meshscope.analysis.findings.rule import Finding, Rule, share
from meshscope.analysis.findings.whole import shares_cores, traced_step
from meshscope.analysis.lateness import Pattern, lateness, pattern
from meshscope.analysis.standing import device_kind
from meshscope.analysis.stragglers import Straggler, stragglers
from meshscope.analysis.waiting import waiting
from meshscope.intervals import difference
from meshscope.run import Run
from meshscope.spans import Kind
from meshscope.units import duration, percent, ratio

FEWEST_STEPS = 3
LEAST_FRAC, LEAST_SHARED_FRAC = 0.02, 0.05
CHANCE = 0.01

_FIXES = {
    "data": """loader = torch.utils.data.DataLoader(
    dataset, num_workers=8, prefetch_factor=4, persistent_workers=True)""",
    "idle": """# on the late rank: what its host does while its device idles
py-spy dump --pid PID""",
    "compute": """# on the late rank's device: is it throttled, or shared?
nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE""",
}
_FIX_CPU = """# on the late rank: its threads, and what else runs on its cores
top -H -p PID"""
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
    held = {one.rank: _held_ns(one.rank, run) for one in late}
    found = ((one, ratio(held[one.rank], one.of_ns)) for one in late)
    return tuple(_finding(one, frac, seen, run) for one, frac in found if _is_material(one, frac, run))


def _held_ns(rank: int, run: Run) -> float:
    """How long another rank waits for this one while it computes nothing, in the mean over the others."""
    total: dict[int, int] = defaultdict(int)
    for window, waits in waiting(run).windows.items():
        if window.rank != rank:
            held = waits.waiting(waits.last_rank == rank)
            total[window.rank] += difference(held, window.spans.busy(Kind.COMPUTE)).total_ns
    return float(np.mean(list(total.values()))) if total else 0.0


def _is_material(one: Straggler, frac: float, run: Run) -> bool:
    if one.late_steps < FEWEST_STEPS:
        return False
    if not shares_cores(run):
        return frac >= LEAST_FRAC
    return frac >= LEAST_SHARED_FRAC and _by_chance(one.rank, run) <= CHANCE


def _by_chance(rank: int, run: Run) -> float:
    """How likely it is that any of the ranks is the latest so often, if each step picked one of them at random."""
    found = lateness(run)
    late_ns = np.nan_to_num(found.late_ns)
    latest = (late_ns.argmax(axis=0) == found.ranks.index(rank)) & (late_ns.max(axis=0) > 0)
    steps, times, ranks = len(found.steps), int(latest.sum()), len(found.ranks)
    tail = sum(comb(steps, k) * (1 / ranks) ** k * (1 - 1 / ranks) ** (steps - k) for k in range(times, steps + 1))
    return min(1.0, ranks * tail)


def _finding(one: Straggler, frac: float, seen: Pattern, run: Run) -> Finding:
    said = f"rank {one.rank} came last to {one.last} of {one.calls} collectives; {percent(frac)} of the time traced "
    said += f"({duration(frac * one.of_ns)} of {duration(one.of_ns)}) another rank waits for it and computes nothing"
    evidence = [said, f"late in {one.late_steps} of {one.steps} steps, since step {one.since}"]
    if one.phase:
        evidence.append(f"{_PHASES[one.phase]} {duration(one.phase_ns)} longer than the median rank")
    if seen.kind == "node" and one.rank in seen.ranks:
        evidence.append(f"so are all ranks of machine {seen.host}")
    return Finding(
        code=FINDING.code,
        title="straggler",
        ranks=(one.rank,),
        **vars(share(frac, traced_step(run))),
        evidence=tuple(evidence),
        advice=_ADVICE.get(one.phase, _ELSE),
        fix=_fix(one.phase, run),
    )


def _fix(phase: str, run: Run) -> str:
    if phase == "compute" and device_kind(run) == "cpu":
        return _FIX_CPU
    return _FIXES.get(phase, _FIXES["idle"])


_PHASES = {
    "compute": "it computes",
    "copy": "it copies",
    "communication": "it communicates",
    "data": "it waits for its batch",
    "idle": "its device has nothing to do",
}


FINDING = Rule("straggler", straggler)
