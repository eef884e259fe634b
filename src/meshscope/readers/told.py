"""What a reader made of n rows: their kinds, by which rule, and which collective each is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind
from meshscope.readers.growing import filled

Small = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Told:
    """Columns of shape (n,): ``kind``; ``rule`` and ``collective`` index their tables, −1 for none.

    The user's rules are the first of ``rules``.
    """

    kind: npt.NDArray[np.uint8]
    rule: Small
    collective: Small
    rules: tuple[str, ...]
    collectives: tuple[str, ...]


def by_name(name: Small, names: tuple[str, ...], rows: npt.NDArray[np.bool_], rules: tuple[kinds.Rule, ...]) -> Told:
    """Rows where ``rows`` is true by ``rules``, looked up once per distinct name; the others are OTHER."""
    used = _used(name[rows], len(names))
    found = kinds.classify([names[number] for number in used.tolist()], rules)
    place = np.searchsorted(used, name[rows])
    kind = filled(len(name), np.uint8, 0)
    rule = filled(len(name), np.int32, -1)
    kind[rows], rule[rows] = found.kind[place], found.rule[place]
    is_collective = found.kind == Kind.COLLECTIVE
    canonical = [found.collective(row) if is_collective[row] else "" for row in range(len(used))]
    table = tuple(dict.fromkeys(filter(None, canonical)))
    numbers = np.array([table.index(one) if one else -1 for one in canonical], dtype=np.int32)
    collective = filled(len(name), np.int32, -1)
    collective[rows] = numbers[place]
    return Told(kind, rule, collective, tuple(r.name for r in found.rules), table)


def is_undecided(told: Told) -> npt.NDArray[np.bool_]:
    """Rows that no user's rule has decided; what the trace records may still tell another kind there. Shape (n,)."""
    return (told.rule < 0) | (told.rule >= len(kinds.yours()))


def _used(numbers: Small, count: int) -> npt.NDArray[np.int64]:
    """Which of ``count`` numbers occur."""
    is_used = np.zeros(count, dtype=np.bool_)
    is_used[numbers] = True
    return np.flatnonzero(is_used)


def renamed(told: Told, rows: npt.NDArray[np.int64], collectives: list[str]) -> Told:
    """``told`` with other collectives on the rows numbered ``rows``."""
    table = tuple(dict.fromkeys((*told.collectives, *collectives)))
    column = told.collective.copy()
    column[rows] = [table.index(name) for name in collectives]
    return Told(told.kind, told.rule, column, told.rules, table)
