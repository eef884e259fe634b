"""Which answers of a replay rest on what the scheduler of a CPU chose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from meshscope.analysis.standing import shares_cores
from meshscope.analysis.what_if import BUCKET, FREE, TWICE, WhatIf
from meshscope.run import Run

TURNS = "may save nothing where CPU ranks share cores: threads that compute and threads that transfer take turns there"
_ON_OVERLAP = (FREE, TWICE, BUCKET)


def cautioned(answers: tuple[WhatIf, ...], run: Run) -> tuple[WhatIf, ...]:
    """The answers, those on communication with :data:`TURNS` where ranks share their cores."""
    if not shares_cores(run):
        return answers
    return tuple(
        replace(one, caveat="; ".join(filter(None, (one.caveat, TURNS)))) if one.name in _ON_OVERLAP else one
        for one in answers
    )


def by_caveat(answers: Iterable[WhatIf]) -> dict[str, tuple[str, ...]]:
    """The names of the questions that each caveat is about."""
    found: dict[str, dict[str, None]] = {}
    for one in answers:
        if one.caveat:
            found.setdefault(one.caveat, {})[one.name] = None
    return {caveat: tuple(names) for caveat, names in found.items()}
