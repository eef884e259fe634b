"""Waiting and the ranks that cause it in words, the same in a report and on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from meshscope.analysis.extra_work import Extra
from meshscope.analysis.flight_words import ranks_words
from meshscope.analysis.lateness import FEWEST_STEPS, LATE_FRAC, NO_STEP, Lateness, Pattern, pattern
from meshscope.analysis.own_work import Excess
from meshscope.analysis.standing import shares_cores
from meshscope.analysis.stragglers import LEAST_SHARED_FRAC, Straggler, surely_late
from meshscope.analysis.waiting import Waiting, in_rendezvous, records_waits
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ranges, ratio

_MOST_RANGES, _FIRST_RANGES = 8, 3
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


WAIT_WORDS = {"wait": "only waiting for peers", "rendezvous": "waiting for peers, as XLA records it"}
"""By name how waiting was measured."""


def wait_name(run: Run) -> str:
    """What a table calls the waiting of a rank's time, by how it was measured."""
    return "rendezvous" if in_rendezvous(run) else "wait"


def straggler_words(found: Straggler) -> str:
    """How often a rank came last, what that cost the others, since when, and what it does meanwhile."""
    whom = "each other rank" if found.waiters == found.others else counted(found.waiters, "rank")
    said = f"rank {found.rank} came last to {found.last} of {found.calls} collectives and held up {whom}, "
    said += f"computing or not, {duration(found.cost_ns)} ({percent(found.cost_frac)} of {duration(found.of_ns)})"
    if found.since != NO_STEP:
        said += f", since step {found.since}"
    said += f": {_DOES[found.phase].format(more=duration(found.phase_ns))}" if found.phase else ""
    said += f"; {extra_words(found.extra)}" if found.extra is not None else ""
    return f"{said}; {journal_words(found.journal)}" if found.journal is not None else said


def extra_words(found: Extra) -> str:
    """What a rank does that no other does."""
    others = f"{found.others} at most" if found.others else "none"
    said = f"it spends {duration(found.ns)} on what the others do not run, most of it {found.name}: "
    return f"{said}{counted(found.calls, 'call')} in a window, of others {others}"


def journal_words(found: Excess) -> str:
    """What all steps tell of a rank, not only those that were profiled."""
    does = {"compute": "computes", "data": "waits for its batch"}[found.phase]
    more, others = duration(found.mean_ns), duration(found.others_ns)
    return f"in the mean of {found.steps} unprofiled steps it {does} {more} longer than others ({others})"


def pattern_words(found: Pattern) -> str:
    """What ranks that come late have in common, where it is known; "" for what is even or unknown."""
    when = f"late in {found.steps} of {counted(found.of, 'step')}"
    who = _named_ranks(found.ranks)
    return {
        "rank": f"{when}, and mostly {who}: look at {'it' if len(found.ranks) == 1 else 'them'}",
        "node": f"{when}, and every rank of {found.host} ({who}): look at that machine and its network",
        "roaming": f"{when}, and it roams over {who}: look at the input, and at batches of unequal work",
    }.get(found.kind, "")


def _named_ranks(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 24–31``; of many that are no few ranges only how many, and which the first are."""
    words = ranges(ranks).split(", ")
    if len(words) <= _MOST_RANGES:
        return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(words)}"
    return f"{len(ranks)} ranks ({', '.join(words[:_FIRST_RANGES])}, …)"


def lateness_words(found: Lateness, named: Sequence[Straggler], run: Run) -> str:
    """The pattern in a sentence, by the rule that names stragglers: who is late, or why nobody is called late."""
    seen = pattern(found)
    if named:
        return _named(seen, named)
    late = f"late by {_threshold(LATE_FRAC)} of a step or more"
    if seen.kind == "even":
        of = f"any of {counted(seen.of, 'step')}" if seen.of > 1 else "the one step that was traced"
        return f"no rank is {late} in {of}"
    if not seen.steps:
        return "no straggler, and nothing says how long a step is"
    some = f"some rank is {late} in {seen.steps} of {counted(seen.of, 'step')}"
    if seen.kind == "unknown":
        is_live = bool(run.experiment.strategy) and run.ended is None and not run.is_lost
        return f"no straggler{' so far' if is_live else ''}: {some}; {FEWEST_STEPS} such steps make a pattern"
    return _unnamed(found, late, run)


def _unnamed(found: Lateness, late: str, run: Run) -> str:
    """Why nobody is called a straggler, though some rank is late in three steps or more."""
    seen = pattern(found)
    if not shares_cores(run):
        return f"no straggler that costs enough to name; {pattern_words(seen)}"
    sure = surely_late(found)
    if not sure:
        steps = f"{seen.steps} of {counted(seen.of, 'step')}"
        return f"no straggler: some rank is {late} in {steps}, which may be chance, as ranks share their cores"
    are = "is" if len(sure) == 1 else "are"
    return f"{ranks_words(sure)} {are} {late}, but no straggler: under {_threshold(LEAST_SHARED_FRAC)} is lost to it"


def _threshold(frac: float) -> str:
    """``2 %``: a bound is exact, and not to be taken for something measured."""
    return f"{frac * 100:g} %"


def _named(seen: Pattern, named: Sequence[Straggler]) -> str:
    first, *others = named
    said = f"{len(named)} stragglers ({ranges(sorted(one.rank for one in named), 3)}): " if others else ""
    said += f"rank {first.rank} came last to {first.last} of {first.calls} collectives; {percent(first.held_frac)} of "
    said += "the time traced another rank waits for it without computing"
    said += f", since step {first.since}" if first.since != NO_STEP else ""
    said += f"; {journal_words(first.journal)}" if first.journal is not None else ""
    return f"{pattern_words(seen)}; {said}" if seen.kind == "node" else said
