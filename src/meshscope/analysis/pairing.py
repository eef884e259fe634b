"""Which run of B belongs to which of A."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from meshscope.analysis.change import Change, change
from meshscope.analysis.figures import Figures
from meshscope.analysis.sameness import is_one
from meshscope.errors import InputError


@dataclass(frozen=True)
class Changes:
    """A change for every strategy that both sides have; ``alone`` names those that only one has (side, title)."""

    changes: tuple[Change, ...]
    alone: tuple[tuple[str, str], ...]


def changes(a: Sequence[Figures], b: Sequence[Figures]) -> Changes:
    """Runs of one strategy on one side are repeats of the same thing. One strategy on each side: they are a pair.

    Raises InputError where nothing belongs together, or where a side is several traces that name no strategy.
    """
    before, after = _by_strategy(a, "A"), _by_strategy(b, "B")
    both = [name for name in before if name in after]
    for side, called in ((before, "A"), (after, "B")):
        for repeats in side.values():
            _refuse_copies(repeats, called)
    if len(before) == len(after) == 1:
        return Changes((change(*before.values(), *after.values()),), ())
    if not both:
        raise InputError(
            f"A holds {_listed(before)} and B holds {_listed(after)}: nothing to compare.",
            hint="Give two recordings of one strategy, for example RUN1/ddp and RUN2/ddp.",
        )
    alone = [("A", before[name][0].title) for name in before if name not in after]
    alone += [("B", after[name][0].title) for name in after if name not in before]
    return Changes(tuple(change(before[name], after[name]) for name in both), tuple(alone))


def _refuse_copies(repeats: Sequence[Figures], side: str) -> None:
    """A copy taken for a repeat would make what is known once look as sure as if it had been measured twice."""
    for one, other in combinations(repeats, 2):
        if is_one([one], [other]):
            raise InputError(
                f"Two of {side}'s repeats are one recording of {one.title}.",
                hint="Give each recording once: a copy is no repeat.",
            )


def _by_strategy(runs: Sequence[Figures], side: str) -> dict[str, list[Figures]]:
    found: dict[str, list[Figures]] = {}
    for run in runs:
        found.setdefault(run.strategy, []).append(run)
    if len(found.get("", ())) > 1:
        raise InputError(
            f"{side} holds {len(found[''])} runs of native traces: which of them is meant?",
            hint="Give the file or the folder of one run.",
        )
    return found


def _listed(runs: dict[str, list[Figures]]) -> str:
    return ", ".join(found[0].title for found in runs.values())
