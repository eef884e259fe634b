"""Waiting, lateness and imbalance in ``analyze --json``: what was matched, who came late, and what it cost."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from meshscope.analysis.imbalance import memory_imbalance
from meshscope.analysis.lateness import Lateness, collective_lateness, input_lateness, pattern, step_lateness
from meshscope.analysis.slow_steps import input_waits, slow_steps
from meshscope.analysis.stragglers import stragglers
from meshscope.analysis.waiting import Waiting, waiting
from meshscope.run import Run

MOST_STEPS = 256
"""A matrix shows its newest steps; its pattern is over all of them."""


def waiting_json(run: Run) -> dict[str, Any]:
    """The parts ``waiting``, ``lateness``, ``stragglers``, ``memory_imbalance``, ``slow_steps`` and ``input``.

    ``wait_ns`` of ``waiting.ranks`` is until the last rank came, by matching, added up over calls; that of a rank's
    ``per_step`` counts calls at once once, and is what XLA records of its rendezvous where ``wait_source`` says so.

    A part is absent, or a list empty, where there is nothing to say: fewer than two ranks, no step, nothing matched.
    """
    found = waiting(run)
    said: dict[str, Any] = {}
    if found.spans:
        said["waiting"] = _waiting(found)
    by_source = (collective_lateness(run, found), step_lateness(run), input_lateness(run))
    said["lateness"] = [_lateness(one) for one in by_source if one.is_known]
    said["stragglers"] = [_known(asdict(one)) for one in stragglers(run)]
    imbalance = memory_imbalance(run)
    if imbalance is not None:
        said["memory_imbalance"] = asdict(imbalance)
    said["slow_steps"] = [_known(asdict(one)) for one in slow_steps(run)]
    said["input"] = [_known(asdict(one)) | {"stalls": list(one.stalls)} for one in input_waits(run)]
    return said


def _waiting(found: Waiting) -> dict[str, Any]:
    said: dict[str, Any] = {
        "collectives": found.collectives,
        "matched": found.matched,
        "spans": found.spans,
        "source": "matching",
        "ranks": [asdict(rank) for rank in found.ranks],
        "unmatched": dict(found.unmatched),
    }
    if found.residual_ns is not None:
        said["residual_ns"] = found.residual_ns
        said["clocks"] = {
            str(rank): {"offset_ns": clock.offset_ns, "drift_ns_per_s": clock.drift_ns_per_s}
            for rank, clock in sorted(found.clocks.items())
        }
    return said


def _lateness(found: Lateness) -> dict[str, Any]:
    seen = pattern(found)
    said: dict[str, Any] = {
        "source": found.source,
        "pattern": {"kind": seen.kind, "ranks": list(seen.ranks), "steps": seen.steps, "of": seen.of},
    }
    if seen.kind != "even" or found.source == "collectives":
        rows = found.late_ns[:, -MOST_STEPS:].tolist()
        said |= {"ranks": list(found.ranks), "steps": list(found.steps[-MOST_STEPS:])}
        said["late_ns"] = [[None if math.isnan(cell) else round(cell) for cell in row] for row in rows]
    if any(found.hosts):
        said["hosts"] = list(found.hosts)
    if seen.kind not in ("even", "unknown"):
        said["pattern"] |= {"since": seen.since} | ({"host": seen.host} if seen.host else {})
    return said


def _known(said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in said.items()
        if value is not None and (not isinstance(value, float) or math.isfinite(value))
    }
