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

CUT = "…"
"""The end of a name that a list had no room for."""


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
    asked = chosen(runs, of)
    found = [(run, *told) for run in asked if (told := _number(run, name)) is not None]
    if not found:
        raise _unknown(asked, name)
    found = _narrowed(found, rank, step)
    return tuple(
        Explanation(number, group.title, run.name, run.path, _cases(number, Asked(run, tuple(runs), rank, step)))
        for run, group, number in found
    )


def _narrowed(
    found: Sequence[tuple[Run, Group, Number]], rank: int | None, step: int | None
) -> list[tuple[Run, Group, Number]]:
    """Those runs that have such a rank and step. Raises InputError, the first one's, where none has."""
    kept, refused = [], []
    for run, group, number in found:
        try:
            _check(run, number, rank, step)
        except InputError as error:
            refused.append(error)
        else:
            kept.append((run, group, number))
    if not kept:
        raise refused[0]
    return kept


def _cases(number: Number, asked: Asked) -> tuple[Case, ...]:
    found = number.cases(asked)
    if found:
        return found
    narrowed = [f"{what} {given}" for what, given in (("rank", asked.rank), ("step", asked.step)) if given is not None]
    return (Case(", ".join(narrowed) or "all ranks", None, why="nothing is recorded of it", rank=asked.rank),)


def chosen(runs: Sequence[Run], of: str | None) -> list[Run]:
    """The runs called ``of``, all of them where it is None. Raises InputError where none is called so."""
    found = [run for run in runs if of is None or of in (run.name, run.path)]
    if found:
        return found
    names = ", ".join(dict.fromkeys(run.name for run in runs))
    raise InputError(f"There is no run called {of}.", hint=f"There are: {names}.")


def _number(run: Run, name: str) -> tuple[Group, Number] | None:
    """By its own name first: one number's other name may be another's own."""
    known = [(group, number) for group in groups() if group.may_have(name) for number in group.numbers(run)]
    own = next((told for told in known if name in (told[1].name, printable(told[1].name))), None)
    own = own or next((told for told in known if name in told[1].also), None)
    return own or (_begun(known, name.removesuffix(CUT)) if name.endswith(CUT) else None)


def _begun(known: Sequence[tuple[Group, Number]], begin: str) -> tuple[Group, Number] | None:
    """What a list cut short: the one listed number whose name begins so."""
    found = [told for told in known if told[1].is_listed and printable(told[1].name).startswith(begin)]
    return found[0] if len(found) == 1 else None


def _unknown(runs: Sequence[Run], name: str) -> InputError:
    nearest = _nearest(runs, name.lower()) if name else []
    meant = f"Did you mean {' or '.join(map(_brief, nearest))}? " if nearest else ""
    return InputError(
        f"There is no number called {name} here.", hint=f"{meant}Without a NUMBER, explain lists all of them."
    )


def _nearest(runs: Sequence[Run], name: str) -> list[str]:
    """Names that the wrong one is a part of, the shortest first, then those that are written like it."""
    called: dict[str, Number] = {}
    for group in groups():
        for number in (number for run in runs for number in group.numbers(run)):
            for known in (number.name, *number.also):
                called.setdefault(known.lower(), number)
    within = sorted((known for known in called if name in known), key=lambda known: (_rank(called[known]), len(known)))
    # Kernels have names of many lines: what is written like one is found by a part of it.
    short = [known for known, number in called.items() if number.is_listed and len(known) <= _LONGEST + len(name)]
    close = difflib.get_close_matches(name, short, n=2 * _NEAREST, cutoff=0.5)
    found = list(dict.fromkeys(called[known].name for known in (*within, *close)))
    # One name of a kernel says that there are its figures too.
    return [one for one in found if one.rpartition(".")[0] not in found][:_NEAREST]


def _brief(name: str) -> str:
    name = printable(name)
    return name if len(name) <= _LONGEST else name[: _LONGEST - len(CUT)] + CUT


def _rank(number: Number) -> int:
    """Those that are listed come before the others."""
    return 0 if number.is_listed else 1


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
