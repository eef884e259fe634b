"""What cannot be said of a run's windows and records, once the ranks have been looked at together."""

from __future__ import annotations

from meshscope.analysis.hosts_ahead import untold
from meshscope.analysis.simulation import SIMULATED, simulation_note
from meshscope.analysis.waiting import Waiting, records_waits, waiting
from meshscope.records import MemoryRecord, Record
from meshscope.run import Run
from meshscope.spans import Kind, Window
from meshscope.units import counted, ranges

Doubt = tuple[str, str]

WAIT, WORLD, PEAK = "wait_ns", "world", "memory.peak_bytes"

_FACTS = ("ranks", "rank order", SIMULATED)
"""Doubts that are whole sentences."""


def doubts(run: Run) -> tuple[Doubt, ...]:
    """The windows' own, in their order; what they cannot say of waiting alone is said for all ranks together."""
    found = waiting(run)
    said: dict[Doubt, None] = {(SIMULATED, note): None for note in (simulation_note(run),) if note}
    for window in run.windows:
        for what, why in window.cannot_say:
            if what != WAIT or not found.spans:
                said[what, why] = None
    said |= {doubt: None for record in run.records for doubt in record.cannot_say}
    said |= dict.fromkeys(unmatched(found, run))
    said |= {(WORLD, why): None for why in found.notes}
    said |= dict.fromkeys(untold(run))
    return tuple(said)


def doubt_words(run: Run, doubt: Doubt) -> str:
    """A doubt as a sentence."""
    what, why = doubt
    if what == PEAK and any(_has_peak(record) for record in run.records if doubt in record.cannot_say):
        return f"{what} is not exact: {why}"
    return why if what in _FACTS else f"cannot say {what}{_whose(run, doubt)}: {why}"


def _has_peak(record: Record) -> bool:
    return isinstance(record, MemoryRecord) and record.peak_bytes is not None


def _whose(run: Run, doubt: Doubt) -> str:
    """The ranks that a doubt is about, where it is not about all and does not name them itself."""
    ranks = {window.rank for window in run.windows if doubt in window.cannot_say}
    if not ranks or doubt[1].startswith("rank") or ranks == {window.rank for window in run.windows}:
        return ""
    return f" of {'ranks' if len(ranks) > 1 else 'rank'} {ranges(ranks)}"


def unmatched(found: Waiting, run: Run) -> tuple[Doubt, ...]:
    """Why some or all waiting is not known, where the traces do not record it themselves."""
    if all(records_waits(window) or not has_collective(window) for window in run.windows):
        return ()
    of = counted(found.spans, "collective span")
    return tuple((WAIT, f"{count} of {of}: {why}") for why, count in found.unmatched)


def has_collective(window: Window) -> bool:
    return bool((window.spans.kind == Kind.COLLECTIVE).any())
