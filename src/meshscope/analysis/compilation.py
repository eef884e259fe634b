"""Compilation: what it took before training got going, and which steps compiled again, what changed, and what it cost.

From the journal's entries. Traces opened by themselves are asked in :mod:`meshscope.analysis.traced_compilation`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from meshscope.analysis.parts import per_run
from meshscope.analysis.steps import WARM_UP_STEPS
from meshscope.recording.entries import Compiled
from meshscope.run import Run
from meshscope.units import ratio

STAGES = ("trace", "lower", "compile")
NOT_SAID = "the framework did not say which input changed"


@dataclass(frozen=True)
class Recompilation:
    """One function compiled again in one step, by ``ranks`` (in their journals; a JAX process writes one for all its
    devices).

    ``duration_ns`` is of the rank that took longest, since the others wait for it, and ``stage_ns`` splits it into
    trace, lower and compile where the framework tells them apart. ``changed`` names the inputs that are not as they
    were (``tokens int32[8,128] → int32[7,128]``), ``reason`` is the framework's own. ``is_warm_up``: in the run's first
    two steps, where programs still settle.
    """

    step: int
    function: str
    ranks: tuple[int, ...]
    duration_ns: int
    stage_ns: dict[str, int]
    changed: tuple[str, ...] = ()
    reason: str = ""
    is_from_cache: bool = False
    is_warm_up: bool = False

    @property
    def why(self) -> str:
        """What changed, else the reason; "" where nobody told."""
        return ", ".join(self.changed) or self.reason


@dataclass(frozen=True)
class Compilation:
    """Of one run; ``rank`` is the one that spent most on recompilations past warm-up (−1: none did).

    ``before_ns`` is what the slowest rank compiled for before its first step, ``first_step_ns`` the same within that
    step, both without recompilations; NaN where nothing was recorded. ``programs`` counts the compilations of the rank
    with most, recompilations among them. ``again`` are all recompilations by step. ``cost_ns`` is what ``rank`` spent
    on those past warm-up, ``cost_frac`` that as a share of ``training_ns``, from the first step's beginning to the last
    one's end. ``from_cache`` counts programs that the rank with most of them read from JAX's persistent cache.
    """

    before_ns: float = math.nan
    first_step_ns: float = math.nan
    programs: int = 0
    from_cache: int = 0
    again: tuple[Recompilation, ...] = ()
    rank: int = -1
    cost_ns: int = 0
    cost_frac: float = math.nan
    training_ns: int = 0
    reporting: tuple[int, ...] = field(default=())

    @property
    def is_known(self) -> bool:
        return self.programs > 0

    @property
    def storm(self) -> tuple[Recompilation, ...]:
        """Recompilations past warm-up: those that training does not need."""
        return tuple(one for one in self.again if not one.is_warm_up)

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps past warm-up that compiled again."""
        return tuple(sorted({one.step for one in self.storm}))


@dataclass(frozen=True)
class _Program:
    """One compilation of one rank, with the tracing and lowering that led to it."""

    entry: Compiled
    stage_ns: dict[str, int]

    @property
    def duration_ns(self) -> int:
        return sum(self.stage_ns.values())


@per_run
def compilation(run: Run) -> Compilation:
    """Empty where no compilation was recorded."""
    by_rank: dict[int, list[Compiled]] = defaultdict(list)
    for entry in run.compiles:
        by_rank[entry.rank].append(entry)
    programs = {rank: _programs(entries) for rank, entries in by_rank.items()}
    if not any(programs.values()):
        return Compilation()
    first = int(run.steps.step.min()) if len(run.steps) else 0
    again = {rank: [one for one in mine if one.entry.is_recompilation] for rank, mine in programs.items()}
    spent = {rank: sum(one.duration_ns for one in mine if not _is_warm_up(one, first)) for rank, mine in again.items()}
    rank = max(spent, key=lambda rank: (spent[rank], -rank))
    training_ns = int(run.steps.end_ns.max() - run.steps.start_ns.min()) if len(run.steps) else 0
    return Compilation(
        before_ns=float(max(_before_ns(entries, first) for entries in by_rank.values())),
        first_step_ns=float(max(_within_ns(entries, first) for entries in by_rank.values())),
        programs=max(map(len, programs.values())),
        from_cache=max(sum(one.entry.is_from_cache for one in mine) for mine in programs.values()),
        again=_together([one for mine in again.values() for one in mine], first),
        rank=rank if spent[rank] else -1,
        cost_ns=spent[rank],
        cost_frac=ratio(spent[rank], training_ns),
        training_ns=training_ns,
        reporting=tuple(sorted(programs)),
    )


def _programs(entries: Iterable[Compiled]) -> list[_Program]:
    """In order. A trace or lowering belongs to the next compilation of its function in the same step."""
    found: list[_Program] = []
    waiting: dict[tuple[str, int], dict[str, int]] = {}
    for entry in entries:
        place = entry.function, entry.step
        if entry.stage == "compile":
            found.append(_Program(entry, _summed(waiting.pop(place, {}), entry)))
        else:
            waiting[place] = _summed(waiting.get(place, {}), entry)
    return found


def _summed(stage_ns: dict[str, int], entry: Compiled) -> dict[str, int]:
    return stage_ns | {entry.stage: stage_ns.get(entry.stage, 0) + entry.duration_ns}


def _before_ns(entries: Iterable[Compiled], first: int) -> int:
    return sum(entry.duration_ns for entry in entries if entry.step < first and not entry.is_recompilation)


def _within_ns(entries: Iterable[Compiled], first: int) -> int:
    return sum(entry.duration_ns for entry in entries if entry.step == first and not entry.is_recompilation)


def _is_warm_up(program: _Program, first: int) -> bool:
    return program.entry.step < first + WARM_UP_STEPS


def _together(programs: Iterable[_Program], first: int) -> tuple[Recompilation, ...]:
    """What several ranks compiled again in one step for one reason is one recompilation; within a rank each counts."""
    groups: dict[tuple[object, ...], list[_Program]] = defaultdict(list)
    counts: dict[tuple[object, ...], int] = defaultdict(int)
    for one in programs:
        entry = one.entry
        key = (entry.step, entry.function, entry.changed, entry.reason)
        counts[entry.rank, *key] += 1
        groups[(*key, counts[entry.rank, *key])].append(one)
    found = [_recompilation(alike, first) for alike in groups.values()]
    return tuple(sorted(found, key=lambda one: (one.step, one.ranks, one.function)))


def _recompilation(alike: list[_Program], first: int) -> Recompilation:
    slowest = max(alike, key=lambda one: one.duration_ns)
    entry = slowest.entry
    return Recompilation(
        step=entry.step,
        function=entry.function,
        ranks=tuple(sorted(one.entry.rank for one in alike)),
        duration_ns=slowest.duration_ns,
        stage_ns={stage: slowest.stage_ns[stage] for stage in STAGES if stage in slowest.stage_ns},
        changed=entry.changed,
        reason=entry.reason,
        is_from_cache=all(one.entry.is_from_cache for one in alike),
        is_warm_up=_is_warm_up(slowest, first),
    )
