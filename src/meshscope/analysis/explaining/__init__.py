"""What a number is made of: its formula with figures, the windows and spans behind it, and what it leaves out.

One file per group of numbers, found by its ``GROUP``. A figure is a tree that works out to the number that
``analyze --json`` shows, to the last digit; where a number cannot be said, its case says why.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cache

from meshscope.analysis.explaining.number import Asked, Explanation, Group, Number
from meshscope.discovery import discover
from meshscope.errors import InputError
from meshscope.run import Run
from meshscope.units import ranges

_NEAREST = 4


@cache
def groups() -> tuple[Group, ...]:
    """Every group, in the order in which people look for them."""
    found = discover("meshscope.analysis.explaining", "GROUP", Group)
    return tuple(sorted(found, key=lambda group: (group.place, group.title)))


def explainable(runs: Sequence[Run]) -> tuple[tuple[Group, tuple[Number, ...]], ...]:
    """The numbers of some runs by group, each once; a group without any is left out."""
    found = []
    for group in groups():
        numbers = {number.name: number for run in runs for number in group.numbers(run)}
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
        Explanation(number, group.title, run.name, run.path, number.cases(Asked(run, tuple(runs), rank, step)))
        for run, group, number in found
    )


def _chosen(runs: Sequence[Run], of: str | None) -> list[Run]:
    chosen = [run for run in runs if of is None or of in (run.name, run.path)]
    if chosen:
        return chosen
    names = ", ".join(dict.fromkeys(run.name for run in runs))
    raise InputError(f"There is no run called {of}.", hint=f"There are: {names}.")


def _number(run: Run, name: str) -> tuple[Group, Number] | None:
    """By its own name first: one number's other name may be another's own."""
    known = [(group, number) for group in groups() for number in group.numbers(run)]
    own = next((told for told in known if told[1].name == name), None)
    return own or next((told for told in known if name in told[1].also), None)


def _unknown(runs: Sequence[Run], name: str) -> InputError:
    called: dict[str, str] = {}
    for _, numbers in explainable(runs):
        for number in numbers:
            for known in (number.name, *number.also):
                called.setdefault(known.lower(), number.name)
    within = sorted((known for known in called if name and name.lower() in known), key=len)
    close = difflib.get_close_matches(name.lower(), called, n=2 * _NEAREST, cutoff=0.5)
    nearest = list(dict.fromkeys(called[known] for known in (*within, *close)))[:_NEAREST]
    meant = f"Did you mean {' or '.join(nearest)}? " if nearest else ""
    return InputError(
        f"There is no number called {name} here.", hint=f"{meant}Without a NUMBER, explain lists all of them."
    )


def _check(run: Run, number: Number, rank: int | None, step: int | None) -> None:
    for what, given in (("rank", rank), ("step", step)):
        if given is not None and what not in number.by:
            raise InputError(f"{number.name} cannot be told of one {what}.", hint=f"Leave --{what} out.")
    if rank is not None:
        ranks = sorted({window.rank for window in run.windows} | {entry.rank for entry in run.memory}
                       | {record.rank for record in run.records})  # fmt: skip
        if rank not in ranks:
            there = f"Its ranks: {ranges(ranks)}." if ranks else "Nothing was recorded of its ranks."
            raise InputError(f"{run.name} has no rank {rank}.", hint=there)
    if step is not None and step not in (known := _steps(run, number)):
        there = f"Steps that it can be told of: {ranges(known)}." if known else "No whole step was recorded."
        raise InputError(f"{run.name} has no step {step} for {number.name}.", hint=there)


def _steps(run: Run, number: Number) -> list[int]:
    """The steps that a number can be told of: profiled ones where ranks are told apart, else those of the journal."""
    if "rank" in number.by:
        return sorted({step for window in run.windows for step in window.steps})
    return sorted(set(run.steps.step.tolist()))
