"""What a number is made of: its formula with figures, the windows and spans behind it, and what it leaves out.

One file per group of numbers, found by its ``GROUP``. A figure is a tree that works out to the number that
``analyze --json`` shows, to the last digit; where a number cannot be said, its case says why.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cache

from meshscope.analysis.explaining.number import Asked, Case, Explanation, Group, Number
from meshscope.discovery import discover
from meshscope.errors import InputError
from meshscope.run import Run
from meshscope.units import printable, ranges

_NEAREST = 4
_LONGEST = 64


@cache
def groups() -> tuple[Group, ...]:
    """Every group, in the order in which people look for them."""
    found = discover("meshscope.analysis.explaining", "GROUP", Group)
    return tuple(sorted(found, key=lambda group: (group.place, group.title)))


def explainable(runs: Sequence[Run]) -> tuple[tuple[Group, tuple[Number, ...]], ...]:
    """The numbers of some runs by group, each once, without those that stand in no list; no group without any."""
    found = []
    for group in groups():
        numbers = {number.name: number for run in runs for number in group.numbers(run) if number.is_listed}
        if numbers:
            found.append((group, tuple(numbers.values())))
    return tuple(found)


def explanations(
    runs: Sequence[Run], name: str, *, of: str | None = None, rank: int | None = None, step: int | None = None
) -> tuple[Explanation, ...]:
    """The number of that name (or of one of its other names) of every run, or of the run called ``of``.

    Raises InputError for a name that no number has, for a run, rank or step that is not there, and for what a number
    cannot be narrowed to.
    """
    chosen = _chosen(runs, of)
    found = [(run, *told) for run in chosen if (told := _number(run, name)) is not None]
    if not found:
        raise _unknown(chosen, name)
    for run, _, number in found:
        _check(run, number, rank, step)
    return tuple(
        Explanation(number, group.title, run.name, run.path, _cases(number, Asked(run, tuple(runs), rank, step)))
        for run, group, number in found
    )


def _cases(number: Number, asked: Asked) -> tuple[Case, ...]:
    found = number.cases(asked)
    if found:
        return found
    narrowed = [f"{what} {given}" for what, given in (("rank", asked.rank), ("step", asked.step)) if given is not None]
    return (Case(", ".join(narrowed) or "all ranks", None, why="nothing is recorded of it", rank=asked.rank),)


def _chosen(runs: Sequence[Run], of: str | None) -> list[Run]:
    chosen = [run for run in runs if of is None or of in (run.name, run.path)]
    if chosen:
        return chosen
    names = ", ".join(dict.fromkeys(run.name for run in runs))
    raise InputError(f"There is no run called {of}.", hint=f"There are: {names}.")


def _number(run: Run, name: str) -> tuple[Group, Number] | None:
    """By its own name first: one number's other name may be another's own."""
    known = [(group, number) for group in groups() if group.may_have(name) for number in group.numbers(run)]
    own = next((told for told in known if told[1].name == name), None)
    return own or next((told for told in known if name in told[1].also), None)


def _unknown(runs: Sequence[Run], name: str) -> InputError:
    nearest = _nearest(runs, name.lower()) if name else []
    meant = f"Did you mean {' or '.join(map(printable, nearest))}? " if nearest else ""
    return InputError(
        f"There is no number called {name} here.", hint=f"{meant}Without a NUMBER, explain lists all of them."
    )


def _nearest(runs: Sequence[Run], name: str) -> list[str]:
    """Names that the wrong one is a part of, the shortest first, then those that are written like it."""
    called: dict[str, str] = {}
    for group in groups():
        for number in (number for run in runs for number in group.numbers(run)):
            for known in (number.name, *number.also):
                called.setdefault(known.lower(), number.name)
    within = sorted((known for known in called if name in known), key=len)
    # Kernels have names of many lines: what is written like one is found by a part of it.
    short = [known for known in called if len(known) <= max(_LONGEST, 2 * len(name))]
    close = difflib.get_close_matches(name, short, n=2 * _NEAREST, cutoff=0.5)
    return list(dict.fromkeys(called[known] for known in (*within, *close)))[:_NEAREST]


def _check(run: Run, number: Number, rank: int | None, step: int | None) -> None:
    for what, given, why in (("rank", rank, number.no_rank), ("step", step, number.no_step)):
        if given is not None and what not in number.by:
            raise InputError(f"{number.name} cannot be told of one {what}: {why}.", hint=f"Leave --{what} out.")
    if rank is not None:
        ranks = sorted({window.rank for window in run.windows} | {entry.rank for entry in run.memory}
                       | set(run.steps.rank.tolist()) | {started.rank for started in run.ranks}
                       | {record.rank for record in run.records})  # fmt: skip
        if rank not in ranks:
            there = f"Its ranks: {ranges(ranks)}." if ranks else "Nothing was recorded of its ranks."
            raise InputError(f"{run.name} has no rank {rank}.", hint=there)
    if step is not None and step not in (known := sorted(set(number.known_steps(run)))):
        there = f"Steps that it can be told of: {ranges(known)}." if known else "It can be told of no step here."
        raise InputError(f"{run.name} has no step {step} for {number.name}.", hint=there)
