"""Which answers of a replay rest on what the scheduler of a CPU chose, and which on what no setting can bring about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from meshscope.analysis.needed_at_once import is_mostly_needed_at_once
from meshscope.analysis.standing import shares_cores
from meshscope.analysis.what_if import BUCKET, FREE, TWICE, WITH_WAITING, WhatIf
from meshscope.run import Run

TURNS = "may save nothing where CPU ranks share cores: threads that compute and threads that transfer take turns there"
AT_ONCE = "most of its results are needed at once, as under tensor parallelism: a bound that no setting reaches"
_BRIEF = {
    TURNS: "may save nothing: ranks share cores",
    AT_ONCE: "a bound: results are needed at once",
    WITH_WAITING: "waiting is part of it",
}
"""The same for where there is little room, by what stands in each."""

_ON_OVERLAP = (FREE, TWICE, BUCKET)


def cautioned(answers: tuple[WhatIf, ...], run: Run) -> tuple[WhatIf, ...]:
    """The answers, those on communication with :data:`TURNS` where ranks share their cores, and that of communication
    for free with :data:`AT_ONCE` where most of it cannot be hidden."""
    if shares_cores(run):
        answers = _with(TURNS, _ON_OVERLAP, answers)
    return _with(AT_ONCE, (FREE,), answers) if is_mostly_needed_at_once(run) else answers


def _with(caveat: str, names: tuple[str, ...], answers: tuple[WhatIf, ...]) -> tuple[WhatIf, ...]:
    return tuple(
        replace(one, caveat="; ".join(filter(None, (one.caveat, caveat)))) if one.name in names else one
        for one in answers
    )


def by_caveat(answers: Iterable[WhatIf]) -> dict[str, tuple[str, ...]]:
    """The names of the questions that each caveat is about."""
    found: dict[str, dict[str, None]] = {}
    for one in answers:
        if one.caveat:
            found.setdefault(one.caveat, {})[one.name] = None
    return {caveat: tuple(names) for caveat, names in found.items()}


def briefly(caveat: str) -> str:
    """What speaks against an answer in a few words each."""
    said = (next((brief for full, brief in _BRIEF.items() if full in one), one) for one in caveat.split("; "))
    return "; ".join(dict.fromkeys(said))
