"""How much longer a step of one run takes than one of another, and in which parts of the step that lies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from meshscope.analysis.contenders import Contender
from meshscope.analysis.step_split import FEWEST, PARTS, StepSplit
from meshscope.analysis.winner import Decision, decide
from meshscope.units import counted

UNPROFILED = "unprofiled"


@dataclass(frozen=True)
class GapPart:
    """``ns`` that the slower one spends more on it in a step; negative where it spends less.

    ``is_clear``: by more than the spreads of both together, over profiled steps; None where there are too few to tell.
    """

    name: str
    ns: int
    is_clear: bool | None


@dataclass(frozen=True)
class Gap:
    """From ``fast`` to ``slow``: ``total_ns`` a step, which ``parts`` add up to exactly.

    The parts are ``computing`` (hidden communication lies beside it), exposed communication (``waiting`` and
    ``transfer`` where both runs tell them apart, else ``exposed``), ``copy``, ``idle``, and ``unprofiled``: what the
    steps without a profiler differ by beyond the profiled ones. Empty where ``untold`` says why they are not known;
    ``shares_cores``: the ranks of one of them do, so that what is exposed is their scheduler's choice.
    ``few`` says of how few profiled steps they are, where that leaves open how far they scatter.
    ``decision`` says who wins. ``where`` says over which collectives exposed time is added up.
    ``hidden_ns``: how much of the part ``computing`` is compute beside a collective, shown in a column of its own.
    """

    fast: str
    slow: str
    total_ns: int
    times: float
    parts: tuple[GapPart, ...]
    decision: Decision
    untold: str
    few: str
    where: str
    shares_cores: bool = False
    hidden_ns: int = 0

    @property
    def verdict(self) -> str:
        """One of WON, LEVEL, UNKNOWN and PROFILED."""
        return self.decision.verdict

    @property
    def why(self) -> str:
        """Why it is UNKNOWN who wins."""
        return self.decision.why


def gap(fast: Contender, slow: Contender) -> Gap | None:
    """None where the step time of either is not known."""
    if math.isnan(fast.step_ns + slow.step_ns) or not fast.step_ns:
        return None
    total_ns = round(slow.step_ns) - round(fast.step_ns)
    untold = _untold(fast, slow)
    return Gap(
        fast=fast.name,
        slow=slow.name,
        total_ns=total_ns,
        times=slow.step_ns / fast.step_ns,
        parts=() if untold else _parts(fast, slow, total_ns),
        decision=decide(fast, slow),
        untold=untold,
        few=_few(fast, slow),
        where=_where(fast, slow),
        shares_cores=fast.row.shares_cores or slow.row.shares_cores,
        hidden_ns=slow.split.parts_ns["hidden"] - fast.split.parts_ns["hidden"] if fast.split and slow.split else 0,
    )


def _untold(fast: Contender, slow: Contender) -> str:
    lacking = next((one.name for one in (fast, slow) if one.split is None), "")
    return f"no complete step of {lacking} was profiled" if lacking else ""


def _few(fast: Contender, slow: Contender) -> str:
    counts = [one.split.steps for one in (fast, slow) if one.split is not None]
    if not counts or min(counts) >= FEWEST:
        return ""
    return counted(min(counts), "profiled step")


def _parts(fast: Contender, slow: Contender, total_ns: int) -> tuple[GapPart, ...]:
    before, after = fast.split, slow.split
    assert before is not None
    assert after is not None
    is_apart = before.tells_waiting and after.tells_waiting
    names = ("computing", *(("waiting", "transfer") if is_apart else ("exposed",)), "copy", "idle")
    found = [_part(name, before, after) for name in names]
    rest_ns = total_ns - sum(part.ns for part in found)
    return (*found, *([GapPart(UNPROFILED, rest_ns, is_clear=True)] if rest_ns else []))


def _part(name: str, before: StepSplit, after: StepSplit) -> GapPart:
    ns = _of(after, name) - _of(before, name)
    return GapPart(name, ns, _is_clear(ns, before.spread_ns[name] + after.spread_ns[name]))


def _is_clear(ns: int, spread_ns: float) -> bool | None:
    return None if math.isnan(spread_ns) else abs(ns) > spread_ns


def _of(split: StepSplit, name: str) -> int:
    return {"computing": split.computing_ns, "exposed": split.exposed_ns}.get(name, split.parts_ns.get(name, 0))


def _where(fast: Contender, slow: Contender) -> str:
    """What exposed time of both is added up over: the kind of collective only where neither leaves another exposed."""
    kinds = {row.name for one in (fast, slow) for row in one.collectives if row.exposed_ns > 0}
    only = next(iter(kinds)).replace("_", "-") if len(kinds) == 1 else ""
    return f"in {only}" if only and only != "unnamed" else "over all collectives" if kinds else ""


@dataclass(frozen=True)
class Delta:
    """How many ns more the second of two runs has of something; ``is_clear`` as in :class:`GapPart`."""

    ns: int
    is_clear: bool | None


def deltas(a: Contender, b: Contender) -> dict[str, Delta]:
    """From ``a`` to ``b``, of the ``step`` and of every part that both know; the parts differ by ``span`` in all.

    Where only one of the two tells waiting from transfer, both have ``exposed`` in their place.
    """
    found = {}
    if not math.isnan(a.step_ns + b.step_ns):
        ns = round(b.step_ns) - round(a.step_ns)
        found["step"] = Delta(ns, _is_clear(ns, a.step_spread_ns + b.step_spread_ns))
    before, after = a.split, b.split
    if before is None or after is None:
        return found
    for name in PARTS:
        one_ns, other_ns = before.part_ns(name), after.part_ns(name)
        if name == "exposed" and "transfer" not in found:
            one_ns, other_ns = before.exposed_ns, after.exposed_ns
        if one_ns is None or other_ns is None:
            continue
        ns = other_ns - one_ns
        found[name] = Delta(ns, _is_clear(ns, before.spread_ns[name] + after.spread_ns[name]))
    span_ns = after.span_ns - before.span_ns
    return found | {"span": Delta(span_ns, _is_clear(span_ns, before.spread_ns["span"] + after.spread_ns["span"]))}
