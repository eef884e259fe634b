"""Straggler: one rank comes late to collectives and the others wait for it.

Fires for each rank that ``stragglers`` names, by the rule told there; once for all of a machine whose ranks are late
together while no other is (``lateness.pattern``), with what ranks of other machines wait for any of them. The cost is
the time in which another rank waits for it and computes nothing, in the mean over those that do, of the traced steps;
where the journal shows it, what the rank is longer at its own work, of a usual step. Where its device idles for a host
that is late, that is why, and told here instead of in a finding of its own.
"""

from __future__ import annotations

from collections import defaultdict

from meshscope.analysis.findings.host_bound import host_reason, late_hosts
from meshscope.analysis.findings.rule import Cost, Finding, Rule, part, per_step
from meshscope.analysis.findings.whole import all_traced, usual_step
from meshscope.analysis.lateness import Pattern, lateness, pattern
from meshscope.analysis.own_work import Excess
from meshscope.analysis.standing import device_kind
from meshscope.analysis.stragglers import Straggler, held_up, stragglers
from meshscope.analysis.waiting import waiting
from meshscope.analysis.waiting_words import extra_words, journal_words
from meshscope.intervals import Intervals, together
from meshscope.run import Run
from meshscope.spans import Window
from meshscope.units import counted, duration, duration_of, percent, ratio

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
_FIX_MACHINE = """# on that machine, and on another to compare: links, cores, clocks
ip -s link; uptime; nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE"""
_ADVICE = {
    "data": "It waits for its batches longer than the others: give its loader more workers, or shards of equal size.",
    "idle": "Its host is late: look for work that only this rank does, such as logging, checkpoints or evaluation.",
    "compute": "It computes longer: a slower or throttled device, other work on it, or a larger share of the batch.",
    "copy": "It copies longer than the others: pin its host memory, and see where its device is attached.",
    "communication": "It communicates with others meanwhile: give its groups less, or the groups another order.",
}
_NO_SAVING = (
    "the cost is what others wait, in the mean; the step ends sooner by less where their own hosts take as long"
)
_ELSE = "Compare what it does with the median rank, in the timeline, step by step."


def straggler(run: Run) -> tuple[Finding, ...]:
    seen, named = pattern(lateness(run)), stragglers(run)
    together = [one for one in named if seen.kind == "node" and one.rank in seen.ranks]
    alone = tuple(_finding(one, run) for one in named if one not in together)
    return (_machine(together, seen, run), *alone) if together else alone


def _machine(members: list[Straggler], seen: Pattern, run: Run) -> Finding:
    """One finding for a machine, by the one of its ranks that costs most."""
    worst, lost = members[0], _held_up_together(seen.ranks, run)
    held_ns = sum(one.total_ns for one in lost.values()) / max(len({window.rank for window in lost}), 1)
    others = len(waiting(run).ranks) - len(seen.ranks)
    evidence = [
        f"all {len(seen.ranks)} ranks of machine {seen.host} come late to collectives, and none of the {others} others "
        "by a quarter as much",
        f"late in {seen.steps} of {counted(seen.of, 'step')}, since step {seen.since}",
        f"{percent(ratio(held_ns, worst.of_ns))} of the time traced ({duration_of(held_ns, worst.of_ns)}) a rank of "
        "another machine waits for one of them without computing",
        f"rank {worst.rank} comes last most: to {worst.last} of {worst.calls} collectives",
    ]
    if worst.phase:
        evidence.append(f"of rank {worst.rank}: {_longer(worst, run)}")
    return Finding(
        code=FINDING.code,
        title="straggling machine",
        ranks=seen.ranks,
        **vars(per_step(lost, run)),
        evidence=(*evidence, _NO_SAVING),
        advice="Look at what its ranks have in common before any one of them: the machine's network link, its cores, "
        "its cooling, its disks.",
        fix=_FIX_MACHINE,
    )


def _held_up_together(ranks: tuple[int, ...], run: Run) -> dict[Window, Intervals]:
    """When windows of all other ranks wait for one of these and compute nothing."""
    held: dict[Window, list[Intervals]] = defaultdict(list)
    for rank in ranks:
        for window, idle in held_up(rank, waiting(run)).items():
            if window.rank not in ranks:
                held[window].append(idle)
    return {window: together(each) for window, each in held.items()}


def _longer(one: Straggler, run: Run) -> str:
    return f"{_PHASES[one.phase]} {duration(one.phase_ns)} longer than the median rank, {all_traced(run)}"


def _finding(one: Straggler, run: Run) -> Finding:
    said = f"rank {one.rank} came last to {one.last} of {one.calls} collectives; {percent(one.held_frac)} of the time "
    said += f"traced ({duration_of(one.held_ns, one.of_ns)}) another rank waits for it without computing"
    evidence = [said]
    if one.steps:
        since = f", since step {one.since}" if one.late_steps else ""
        evidence.append(f"late in {one.late_steps} of {counted(one.steps, 'step')}{since}")
    if one.phase:
        evidence.append(_longer(one, run))
    if one.extra is not None:
        evidence.append(extra_words(one.extra))
    if one.journal is not None:
        evidence.append(_journal(one.journal, run))
    if one.shown_by == "traces":
        evidence.append(_NO_SAVING)
    phase = one.journal.phase if one.journal is not None else one.phase
    host = host_reason(one.rank, run) if one.rank in late_hosts(run) else None
    if host is not None:
        evidence.append(f"its host is why it comes late: {host.said}")
    return Finding(
        code=FINDING.code,
        title="straggler",
        ranks=(one.rank,),
        **vars(_cost(one, run)),
        evidence=tuple(evidence),
        advice=host.advice if host is not None else _ADVICE.get(phase, _ELSE),
        fix=host.fix if host is not None else _fix(phase, run),
    )


def _cost(one: Straggler, run: Run) -> Cost:
    if one.shown_by == "journal" and one.journal is not None:
        return part(one.journal.mean_ns, usual_step(run))
    return per_step(held_up(one.rank, waiting(run)), run)


def _journal(found: Excess, run: Run) -> str:
    of = usual_step(run)
    frac = f", {percent(ratio(found.mean_ns, of.ns))} of {of.words}" if of.is_known else ""
    return journal_words(found) + frac


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
