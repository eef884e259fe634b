"""What a reader made of n rows: their kinds, by which rule, and which collective each is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from meshscope import kinds
from meshscope.kinds import Kind

Small = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Told:
    """Columns of shape (n,): ``kind``; ``rule`` and ``collective`` index their tables, −1 for none."""

    kind: npt.NDArray[np.uint8]
    rule: Small
    collective: Small
    rules: tuple[str, ...]
    collectives: tuple[str, ...]


def by_name(name: Small, names: tuple[str, ...], rows: npt.NDArray[np.bool_], rules: tuple[kinds.Rule, ...]) -> Told:
    """Rows where ``rows`` is true by ``rules``, looked up once per distinct name; the others are OTHER."""
    used = np.unique(name[rows])
    found = kinds.classify([names[number] for number in used.tolist()], rules)
    place = np.searchsorted(used, name[rows])
    kind = np.zeros(len(name), dtype=np.uint8)
    rule = np.full(len(name), -1, dtype=np.int32)
    kind[rows], rule[rows] = found.kind[place], found.rule[place]
    collective, collectives = collectives_of(name, names, kind == Kind.COLLECTIVE)
    return Told(kind, rule, collective, tuple(r.name for r in found.rules), collectives)


def collectives_of(name: Small, names: tuple[str, ...], rows: npt.NDArray[np.bool_]) -> tuple[Small, tuple[str, ...]]:
    """The canonical collective of the rows where ``rows`` is true, as numbers into a table; −1 elsewhere."""
    used = np.unique(name[rows])
    canonical = [kinds.collective(names[number]) for number in used.tolist()]
    table = tuple(dict.fromkeys(canonical))
    numbers = np.array([table.index(one) for one in canonical], dtype=np.int32)
    column = np.full(len(name), -1, dtype=np.int32)
    column[rows] = numbers[np.searchsorted(used, name[rows])] if len(used) else -1
    return column, table


def renamed(told: Told, rows: npt.NDArray[np.int64], collectives: list[str]) -> Told:
    """``told`` with other collectives on the rows numbered ``rows``."""
    table = tuple(dict.fromkeys((*told.collectives, *collectives)))
    column = told.collective.copy()
    column[rows] = [table.index(name) for name in collectives]
    return Told(told.kind, told.rule, column, told.rules, table)
