"""Straggler: one rank comes late to collectives and the others wait for it.

Fires for each rank that ``stragglers`` names, by the rule told there. The cost is the time in which another rank waits
for it and computes nothing, in the mean over those that do, of the traced steps; where the journal shows it, what the
rank is longer at its own work, of a usual step.
"""

from __future__ import annotations

from meshscope.analysis.findings.rule import Cost, Finding, Rule, part, per_step
from meshscope.analysis.findings.whole import all_traced, usual_step
from meshscope.analysis.lateness import Pattern, lateness, pattern
from meshscope.analysis.own_work import Excess
from meshscope.analysis.standing import device_kind
from meshscope.analysis.stragglers import Straggler, held_up, stragglers
from meshscope.analysis.waiting import waiting
from meshscope.analysis.waiting_words import extra_words, journal_words
from meshscope.run import Run
from meshscope.units import counted, duration, percent, ratio

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
_NO_SAVING = (
    "the cost is what others wait, in the mean; the step ends sooner by less where their own hosts take as long: the "
    "critical path's “no straggler” is by how much"
)
_ELSE = "Compare what it does with the median rank, in the timeline, step by step."


def straggler(run: Run) -> tuple[Finding, ...]:
    seen = pattern(lateness(run))
    return tuple(_finding(one, seen, run) for one in stragglers(run))


def _finding(one: Straggler, seen: Pattern, run: Run) -> Finding:
    said = f"rank {one.rank} came last to {one.last} of {one.calls} collectives; {percent(one.held_frac)} of the time "
    said += f"traced ({duration(one.held_ns)} of {duration(one.of_ns)}) a rank that waits for it computes nothing"
    evidence = [said]
    if one.steps:
        since = f", since step {one.since}" if one.late_steps else ""
        evidence.append(f"late in {one.late_steps} of {counted(one.steps, 'step')}{since}")
    if one.phase:
        longer = f"{duration(one.phase_ns)} longer than the median rank"
        evidence.append(f"{_PHASES[one.phase]} {longer}, {all_traced(run)}")
    if one.extra is not None:
        evidence.append(extra_words(one.extra))
    if one.journal is not None:
        evidence.append(_journal(one.journal, run))
    if seen.kind == "node" and one.rank in seen.ranks:
        evidence.append(f"so are all ranks of machine {seen.host}")
    if one.shown_by == "traces":
        evidence.append(_NO_SAVING)
    phase = one.journal.phase if one.journal is not None else one.phase
    return Finding(
        code=FINDING.code,
        title="straggler",
        ranks=(one.rank,),
        **vars(_cost(one, run)),
        evidence=tuple(evidence),
        advice=_ADVICE.get(phase, _ELSE),
        fix=_fix(phase, run),
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
