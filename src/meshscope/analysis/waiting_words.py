"""Waiting and the ranks that cause it in words, the same in a report and on the screen."""

from __future__ import annotations

from meshscope.analysis.lateness import NO_STEP
from meshscope.analysis.stragglers import Straggler
from meshscope.analysis.waiting import Waiting, records_waits
from meshscope.units import counted, duration, percent, ratio

_DOES = {
    "compute": "it computes {more} longer than the median rank",
    "copy": "it copies {more} longer than the median rank",
    "communication": "it transfers {more} longer than the median rank",
    "data": "it waits {more} longer for its batches than the median rank",
    "idle": "its device idles {more} longer than the median rank's",
}


def waiting_words(found: Waiting) -> str:
    """How much was matched, and how much of that is waiting; "" where nothing was, or there is one rank only."""
    if not found.matched or len(found.ranks) < 2:
        return ""
    busy_ns = sum(rank.busy_ns for rank in found.ranks)
    wait_ns = sum(rank.wait_ns for rank in found.ranks)
    said = f"waiting: {counted(found.collectives, 'collective')} matched over {len(found.ranks)} ranks"
    if found.residual_ns is not None:
        said += f", their ends within {duration(found.residual_ns)}"
    if not any(records_waits(window) for window in found.windows):  # XLA's own record of waiting is told elsewhere
        said += f"; {percent(ratio(wait_ns, busy_ns))} of their {duration(busy_ns)}, added up over calls and "
        said += "ranks, is waiting for peers"
    offsets = sorted({clock.offset_ns for clock in found.clocks.values()} - {0})
    if offsets:
        said += f"; clocks set right by up to {duration(max(abs(offset) for offset in offsets))}"
    return said


def straggler_words(found: Straggler) -> str:
    """How often a rank came last, what that cost the others, since when, and what it does meanwhile."""
    said = f"rank {found.rank} came last to {found.last} of {found.calls} collectives and held up each other "
    said += f"rank {duration(found.cost_ns)} ({percent(found.cost_frac)} of {duration(found.of_ns)})"
    if found.since != NO_STEP:
        said += f", since step {found.since}"
    return f"{said}: {_DOES[found.phase].format(more=duration(found.phase_ns))}" if found.phase else said
