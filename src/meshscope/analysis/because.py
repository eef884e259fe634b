"""What one strategy spends its longer step on, where profiled steps explain enough of the difference."""

from __future__ import annotations

import math

from meshscope.analysis.breakdown import Breakdown
from meshscope.analysis.overlap import CollectiveOverlap, exposed_in
from meshscope.analysis.standing import Row
from meshscope.units import UNKNOWN, milliseconds, ratio

_MOSTLY_FRAC, _PARTLY_FRAC = 1 / 2, 1 / 3
_ALIKE_FRAC = 0.01
_WORDS = {"exposed": "exposed", "compute": "computing", "copy": "copying", "idle": "idling"}
_CHANCE = "the scheduler's choice"


def because(leader: Row, other: Row, collectives: tuple[CollectiveOverlap, ...]) -> str:
    """What the slower one spends its longer step on; no more than the profiled steps of both support.

    Of what its profiled step is longer than the leader's, the part that grew most is named as the reason if it makes
    up half, as a part of the reason, with its size, if it makes up a third. Neither where the profiled steps differ by
    less than half of what the unprofiled ones do, or by more than that and a half. Exposed time of ranks that share
    their cores is no reason.
    """
    fast, slow = leader.per_step, other.per_step
    if fast is None or slow is None or not other.median_ns > leader.median_ns:
        return ""
    longer_ns, seen_ns = other.median_ns - leader.median_ns, slow.span_ns - fast.span_ns
    than = f"longer than {leader.strategy}'s"
    if abs(longer_ns - seen_ns) > longer_ns * _MOSTLY_FRAC:
        return f"; {other.strategy}'s step is {milliseconds(longer_ns)} ms {than}, {_unseen(longer_ns, seen_ns)}"
    before, after = _parts(fast), _parts(slow)
    grown = {name: after[name] - before[name] for name in after}
    part = max(grown, key=lambda name: grown[name])
    of = milliseconds(grown[part]), milliseconds(seen_ns)
    profiled = f"; {other.strategy}'s profiled step is {of[1]} ms {than}"
    if grown[part] < seen_ns * _PARTLY_FRAC:
        return f"{profiled}, and no part makes up a third (most: {_WORDS[part]}, {of[0]} ms)"
    if part == "exposed" and (leader.shares_cores or other.shares_cores):
        return f"{profiled}, {of[0] if grown[part] < seen_ns else 'all'} of them exposed: {_CHANCE}"
    spends = _spends(part, leader, other, collectives)
    if grown[part] < seen_ns * _MOSTLY_FRAC:
        return f"{profiled}, in part ({of[0]} ms) because {spends}"
    return f", because {spends}"


def _unseen(longer_ns: float, seen_ns: float) -> str:
    """How much longer profiled steps are where that is too little, or too much, for the difference to be in them."""
    seen = milliseconds(abs(seen_ns))
    if abs(seen_ns) <= longer_ns * _ALIKE_FRAC:
        return "but not when profiled, so why is not known"
    if seen_ns < 0:
        return f"but {seen} ms shorter when profiled, so why is not known"
    if seen_ns < longer_ns:
        return f"but only {seen} ms when profiled, too little to say why"
    return f"but {seen} ms when profiled, too much to say why"


def _parts(step: Breakdown) -> dict[str, int]:
    """A step's span in parts that add up to it; compute counts before copies, as it does in the shares."""
    return {
        "exposed": step.exposed_ns,
        "compute": step.compute_ns,
        "copy": step.busy_ns - step.compute_ns - step.exposed_ns,
        "idle": step.idle_ns,
    }


def _spends(part: str, leader: Row, other: Row, collectives: tuple[CollectiveOverlap, ...]) -> str:
    fast, slow = leader.per_step, other.per_step
    if fast is None or slow is None:
        return ""
    slow_frac, fast_frac = (ratio(_parts(step)[part], step.span_ns) for step in (slow, fast))
    against = f"({leader.strategy} {_percent(fast_frac)})"
    if part == "exposed":
        return f"{other.strategy} leaves {_percent(slow_frac)} of a step exposed{_where(collectives, slow)} {against}"
    if part == "compute":
        times = milliseconds(slow.compute_ns), milliseconds(fast.compute_ns)
        return f"{other.strategy} computes {times[0]} ms per step ({leader.strategy} {times[1]} ms)"
    verb = "idles" if part == "idle" else "copies in"
    return f"{other.strategy} {verb} {_percent(slow_frac)} of a step {against}"


def _where(collectives: tuple[CollectiveOverlap, ...], step: Breakdown) -> str:
    where = exposed_in(collectives, step.exposed_ns)
    return f", {where}" if where.startswith("mostly") else f" {where}"


def _percent(frac: float) -> str:
    return UNKNOWN if math.isnan(frac) else f"{frac * 100:.0f} %"
